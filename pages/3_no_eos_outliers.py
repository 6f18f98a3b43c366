"""No-EOS outliers: a row without credit still has a vote."""

from gradebook.ui.bug_page import bug_page

bug_page("no_eos_outliers")
