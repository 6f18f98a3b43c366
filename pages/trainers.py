"""Trainers: what released trainers compute, as measured."""

from gradebook.ui.pages.trainers import trainers

trainers()
