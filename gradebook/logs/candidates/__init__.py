"""Candidates: what may have computed a step, and on which rows."""
