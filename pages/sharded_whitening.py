"""Sharded whitening: each rank whitens with its own tokens."""

from gradebook.ui.pages.bug import bug_page

bug_page("sharded_whitening")
