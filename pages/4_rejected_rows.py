"""Rejected rows: an emptied row still has a vote."""

from gradebook.ui.bug_page import bug_page

bug_page("rejected_rows")
