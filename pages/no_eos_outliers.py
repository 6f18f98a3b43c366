"""No-EOS outliers: a row without credit still has a vote."""

from gradebook.ui.pages.bug import bug_page

bug_page("no_eos_outliers")
