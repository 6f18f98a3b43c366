"""Session: an hour over real bugs, a room, handouts."""

from gradebook.ui.pages.session import session

session()
