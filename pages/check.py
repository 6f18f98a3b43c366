"""Check your run: a log in, the computation behind its advantages out."""

from gradebook.ui.pages.check import check_page

check_page()
