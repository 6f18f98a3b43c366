"""One uid per rollout: every rollout is its own group."""

from gradebook.ui.pages.bug import bug_page

bug_page("uid_per_rollout")
