"""Double normalization: advantages standardized a second time."""

from gradebook.ui.pages.bug import bug_page

bug_page("double_normalization")
