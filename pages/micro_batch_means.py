"""Micro-batch means: a mean of means is not the mean."""

from gradebook.ui.pages.bug import bug_page

bug_page("micro_batch_means")
