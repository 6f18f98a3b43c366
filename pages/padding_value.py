"""Padding value: the critic's values of padding count as what comes next."""

from gradebook.ui.pages.bug import bug_page

bug_page("padding_value")
