"""What the check says to a made log, through a file as a person would."""

import io

from gradebook.logs.log import check_log
from gradebook.logs.read.files import Source


def verdict_on(frame, **options):
    """The verdict on a frame that was written as CSV."""
    file = io.BytesIO()
    frame.to_csv(file, index=False)
    return check_log([Source("log.csv", data=file.getvalue())], **options)


def named(verdict):
    """The estimator's name, and those that give the same numbers."""
    return {verdict.estimator, *(tie.name for tie in verdict.ties)}
