"""Rejected rows: an emptied row still has a vote."""

from gradebook.ui.pages.bug import bug_page

bug_page("rejected_rows")
