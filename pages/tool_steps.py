"""Tool steps: every token of the response, a tool's too, is a step of the estimate."""

from gradebook.ui.pages.bug import bug_page

bug_page("tool_steps")
