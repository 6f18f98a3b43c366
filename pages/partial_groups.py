"""Partial groups: rows grouped by position instead of by prompt."""

from gradebook.ui.pages.bug import bug_page

bug_page("partial_groups")
