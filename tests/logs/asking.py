"""What the check says to a made log, through a file as a person would."""

from gradebook.logs.log import check_log
from gradebook.logs.read.files import LogFile


def verdict_on(frame, name="log.csv", **options):
    """The verdict on a frame that was written as CSV."""
    data = frame.to_csv(index=False).encode()
    return check_log([LogFile(name, data=data)], **options)


def named(verdict):
    """The estimator's name, and those that give the same numbers."""
    return {verdict.estimator, *verdict.ties}
