"""Check a run's log: which computation gives the advantages in it.

From a file to a verdict: `read` (files -> canonical tables of whole steps), `trl`
(groups and weights), `judging` (the whole log, and step by step). `log` leads
through them; `report` and `explore` are what to take home; `recorder`,
`recording` and `guard` are the trainer's side.
"""
