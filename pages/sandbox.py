"""Sandbox: every setting, every estimator, any bugs, one batch."""

from gradebook.ui.pages.sandbox import sandbox

sandbox()
