"""Wrong window: a step divides by its whole generation's tokens."""

from gradebook.ui.pages.bug import bug_page

bug_page("wrong_window")
