"""Missing parentheses: reward - mean / deviation."""

from gradebook.ui.pages.bug import bug_page

bug_page("missing_parentheses")
