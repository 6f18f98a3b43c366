"""Frozen KL: the KL is computed as a number, without a gradient."""

from gradebook.ui.pages.bug import bug_page

bug_page("frozen_kl")
