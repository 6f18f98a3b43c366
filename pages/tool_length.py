"""Tool length: a response's length runs from the model's first token to its last."""

from gradebook.ui.pages.bug import bug_page

bug_page("tool_length")
