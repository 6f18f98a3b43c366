"""Prompt text: rows are grouped by what their prompt says."""

from gradebook.ui.pages.bug import bug_page

bug_page("prompt_text")
