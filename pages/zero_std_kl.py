"""Zero-std KL: a group without signal is still pulled to the reference."""

from gradebook.ui.pages.bug import bug_page

bug_page("zero_std_kl")
