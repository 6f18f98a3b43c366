"""Rooms on the screen."""
