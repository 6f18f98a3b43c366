"""Unscored rows: a completion nobody scored counts as a 0."""

from gradebook.ui.pages.bug import bug_page

bug_page("unscored_rows")
