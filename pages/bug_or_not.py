"""Bug or not?: reports to judge, real bugs among false alarms."""

from gradebook.ui.pages.bug_or_not import bug_or_not

bug_or_not()
