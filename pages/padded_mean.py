"""Padded mean: the mean of the batch counts padding."""

from gradebook.ui.pages.bug import bug_page

bug_page("padded_mean")
