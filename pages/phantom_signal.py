"""Phantom signal: the filter reads the rewards after the penalty for length."""

from gradebook.ui.pages.bug import bug_page

bug_page("phantom_signal")
