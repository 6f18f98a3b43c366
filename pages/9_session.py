"""Session: an hour over the five bugs, a room, handouts."""

from gradebook.ui.pages.session import session

session()
