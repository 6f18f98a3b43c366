"""Fan-out: a rollout in several rows votes several times."""

from gradebook.ui.pages.bug import bug_page

bug_page("fan_out")
