"""Check a run's log: which computation gives the advantages in it.

From a file to a verdict: read (files -> canonical tables of whole steps),
candidates (what could have been computed, and how far each is from the log),
judging (the whole log, and step by step). `log` leads through
them; `report`, `ci` and `explore` are what to take home; `recording` and
`guard` are the trainer's side.
"""
