"""Home: a bug to try at once, and every bug and tool."""

from gradebook.ui.pages.home import home

home()
