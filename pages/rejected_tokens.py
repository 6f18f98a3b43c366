"""Rejected tokens: a rejected token gets weight 0 and stays a token of its row."""

from gradebook.ui.pages.bug import bug_page

bug_page("rejected_tokens")
