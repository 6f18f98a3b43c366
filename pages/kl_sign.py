"""KL sign: the KL term is subtracted from the loss that is minimized."""

from gradebook.ui.pages.bug import bug_page

bug_page("kl_sign")
