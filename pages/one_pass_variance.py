"""One-pass variance: rounding becomes the divisor of equal rewards."""

from gradebook.ui.pages.bug import bug_page

bug_page("one_pass_variance")
