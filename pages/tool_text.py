"""Tool text: the price of the KL is charged at every token of the response."""

from gradebook.ui.pages.bug import bug_page

bug_page("tool_text")
