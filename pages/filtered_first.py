"""Filtered first: rows are dropped, then cut into groups by position."""

from gradebook.ui.pages.bug import bug_page

bug_page("filtered_first")
