"""Scenario files, the editable table, the learner's state, and links."""
