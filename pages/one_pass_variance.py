"""One-pass variance: rounding divides where nothing should."""

from gradebook.ui.pages.bug import bug_page

bug_page("one_pass_variance")
