"""Check your run: a log in, the computation behind its advantages out."""

from gradebook.ui.check_page import check_page

check_page()
