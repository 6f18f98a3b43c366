"""Whole batch: a lost row makes one group of all prompts."""

from gradebook.ui.pages.bug import bug_page

bug_page("whole_batch")
