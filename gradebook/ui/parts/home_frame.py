"""Home's frame: a reward to drag, and the two policies that train with it."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from gradebook.analysis.comparison import compare
from gradebook.bugs import swap
from gradebook.core.batch import Batch
from gradebook.training.home import BUG, STOPS, curves
from gradebook.training.study import study
from gradebook.ui.board.program import stub
from gradebook.ui.parts import predict

START = 1.1
"""Where it opens: right answers are pushed down, and the policy collapses."""
_mount = st.components.v2.component("gradebook_home", js=stub("home.js"))


def frame() -> None:
    """The frame. It holds every setting, so a drag runs nothing here."""
    progress = {"progress": predict.progress().text()}
    _mount(key="home-frame", data=[frame_data() | progress])


@cache
def frame_data() -> dict[str, Any]:
    """What the frame draws: both engines' advantages and the curves, by the
    reward of row 3."""
    trained = curves()
    stops = []
    for stop in STOPS:
        rewards = [1.0, 1.0, 1.0, float(stop), 1.0, 0.0]
        batch = Batch(
            [0, 0, 0, 0, 1, 1],
            rewards,
            eos=[True, True, True, False, True, True],
            settings=study(BUG).settings,
        )
        both = compare(swap(BUG), batch)
        seeds = trained["faulty"][f"{stop:g}"]
        stops.append(
            {
                "reward": stop,
                "rewards": rewards,
                "advantages": [
                    [round(x, 4) for x in trace.advantage.tolist()]
                    for trace in (both.correct, both.faulty)
                ],
                "seeds": seeds,
                "mean": [round(sum(values) / len(values)) for values in zip(*seeds)],
            }
        )
    return {
        "start": STOPS.index(START),
        "stops": stops,
        "updates": trained["updates"],
        "correct": trained["correct"],
    }
