"""Float32 dust: equal rewards, and everybody gets an advantage."""

from gradebook.ui.pages.bug import bug_page

bug_page("float32_dust")
