"""bf16 rewards: the baseline is rounded to 8 bits."""

from gradebook.ui.pages.bug import bug_page

bug_page("bf16_rewards")
