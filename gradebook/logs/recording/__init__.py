"""Recordings: what a training loop hands over, written so that the check reads
it with nothing guessed."""
