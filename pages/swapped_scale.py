"""Swapped scale: group, batch and none each does what another should."""

from gradebook.ui.pages.bug import bug_page

bug_page("swapped_scale")
