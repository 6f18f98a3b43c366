"""Live weight: the off-policy weight is differentiated together with the loss."""

from gradebook.ui.pages.bug import bug_page

bug_page("live_weight")
