"""Variance floor: eps used twice, the first time under the root."""

from gradebook.ui.pages.bug import bug_page

bug_page("variance_floor")
