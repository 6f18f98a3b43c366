"""What a page shows for a state: both engines on its batch."""

from __future__ import annotations

from gradebook.analysis.comparison import Comparison, compare
from gradebook.cases.engines import swapped
from gradebook.cases.state import State


def compared(state: State) -> Comparison:
    """Both engines on the state's batch. Raises GradebookError where the
    batch cannot be read or an engine cannot compute it."""
    return compare(swapped(state.bugs), state.batch())
