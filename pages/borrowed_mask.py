"""Borrowed mask: every turn gets the advantage through the last turn's mask."""

from gradebook.ui.pages.bug import bug_page

bug_page("borrowed_mask")
