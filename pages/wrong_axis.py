"""Wrong axis: advantages gain an axis too many."""

from gradebook.ui.pages.bug import bug_page

bug_page("wrong_axis")
