"""Check a run's log: which computation gives the advantages in it.

From a file to a verdict, a chapter per file: readers (files -> rows),
columns (whose name means what), rollouts (rows -> one batch), computations
(what could have been computed), judging (step by step), verdict (the whole
log), report and pytest_file (what to take home).
"""
