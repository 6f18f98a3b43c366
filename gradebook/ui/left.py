"""Learners who left: their sessions are closed, with all they hold.

Streamlit keeps the session of a learner who left for two minutes, so that a
lost connection finds it again. It frees it only when the next learner leaves.
"""

from __future__ import annotations

import gc
import time
from asyncio import AbstractEventLoop

from streamlit.runtime import get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx

LOOK = 10.0
"""Seconds from one look at the sessions to the next."""
KEPT = 100.0
"""Seconds that a session is kept for its learner to come back: less than
Streamlit's own, after which it cannot be closed any more."""

_there: dict[str, float] = {}
"""When each session was last seen with its learner."""


def here() -> None:
    """The learner of this run is there."""
    context = get_script_run_ctx()
    if context is not None:
        _there[context.session_id] = time.monotonic()


def watch(loop: AbstractEventLoop) -> None:
    """Closes the sessions of learners who left, from now on. Runs on the
    server's own loop."""
    loop.call_later(LOOK, watch, loop)  # first, so that no error ends it
    server, now = get_instance(), time.monotonic()
    for session in list(_there):
        if server.is_active_session(session):
            _there[session] = now
    left = [one for one, seen in _there.items() if now - seen > KEPT]
    for session in left:
        del _there[session]
        server.close_session(session)
    if left:
        gc.collect()
