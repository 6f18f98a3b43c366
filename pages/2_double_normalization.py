"""Double normalization: advantages standardized a second time."""

from gradebook.ui.bug_page import bug_page

bug_page("double_normalization")
