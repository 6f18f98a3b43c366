"""Blind KL: the KL's gradient leaves out that the policy chose the token."""

from gradebook.ui.pages.bug import bug_page

bug_page("blind_kl")
