"""Rooms on the screen: who sits where, the panel on the session page, and
the bar on a bug's page."""
