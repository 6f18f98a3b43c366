"""The screen leaves out no computation that fits a step."""

import formulas
import pytest

from gradebook.logs.candidates.logged_steps import to_logged
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import REWARDS, ruler_of
from gradebook.logs.judging.screen import Screen
from gradebook.logs.judging.search import quiet
from gradebook.logs.judging.space import again, shapes
from gradebook.logs.judging.views import views


def steps_of(seed):
    """The first three steps of a made log."""
    frame = formulas.innocent(seed)[2]
    names = {"response_length": "length", "prompt_id": "prompt", "uid": "prompt"}
    frame = frame.rename(columns={**names, "group_id": "prompt"})
    names = ["step", "prompt", "reward", "advantage", "length"]
    return to_logged(frame[frame["step"] < 3][names].reset_index(drop=True))


def fits(ruler, computed, usable):
    near = ruler.fit(computed)
    return bool((near.level[usable] <= REWARDS).any())


@pytest.mark.parametrize("seed", range(6))
def test_what_the_screen_leaves_out_fits_no_step(seed):
    ruler = ruler_of(steps_of(seed))
    usable = ~quiet(ruler.steps)
    kept = left_out = 0
    for rows in views(ruler.steps, Asked()):
        part = ruler.on(rows.steps)
        screen = Screen(part, rows, usable)
        for shape in shapes(rows):
            firsts, normalized = screen.firsts(shape), screen.seconds(shape)
            for choice in shape.choices:
                first = shape.computed(*choice)
                assert choice in firsts or not fits(part, first, usable)
                for second in rows.seconds:
                    if (second, choice) not in normalized:
                        computed = again(first, rows, second)
                        assert not fits(part, computed, usable), computed.reading
                        left_out += 1
                    kept += (second, choice) in normalized
    assert left_out > kept
