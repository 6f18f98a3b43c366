"""Swapped scale: group, batch and none each do the work of another."""

from gradebook.ui.pages.bug import bug_page

bug_page("swapped_scale")
