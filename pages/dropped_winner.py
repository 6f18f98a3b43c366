"""Dropped winner: a filter asks each row about its siblings."""

from gradebook.ui.pages.bug import bug_page

bug_page("dropped_winner")
