"""Sandbox: every setting, every estimator, any bugs, one batch."""

from gradebook.ui.sandbox import sandbox

sandbox()
