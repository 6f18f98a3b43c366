"""Tool wall: the running return is multiplied by the mask at every token."""

from gradebook.ui.pages.bug import bug_page

bug_page("tool_wall")
