"""The reading exercises: one line of three is right, and the lines really run."""

import pytest
import torch

import gradebook
from gradebook.cases.rules import RULES
from gradebook.cases.scenario import by_rule, load, siblings
from gradebook.core.settings import KINDS
from gradebook.engine.pipeline import SLOPES

STAGES_OF_ROWS = ("score", "advantage", "token_reward", "token_advantage")
NEAR = {"rtol": 1e-6, "atol": 1e-9}


def inputs(batch, correct):
    """What the code of an exercise may read: torch, the batch's columns, its settings,
    and results of earlier stages."""
    names = ("reward", "mask", "eos", "kept_steps", "scored", "text", "rank", "step")
    names += ("logp", "ref_logp", "old_logp", "behaviour_logp", "value", "generation")
    given = {name: getattr(batch, name) for name in names}
    given |= {"prompt": batch.prompt_index, "rollout": batch.rollout_index}
    if batch.logp is not None:
        given["logp"] = batch.logp.clone().requires_grad_()
    given |= {key: getattr(batch.settings, key) for key in KINDS}
    stages = {stage: getattr(correct, stage) for stage in STAGES_OF_ROWS}
    return {"torch": torch, **stages, **given}


def results(bug, number):
    """What a variant of the line computes, and with logp its slope."""
    scenario = load(bug)
    batch, reading = scenario.batch(), scenario.reading
    space = inputs(batch, gradebook.run(gradebook.CORRECT, batch))
    space.pop(reading.gives, None)
    exec(reading.with_line(number), space)
    value, logp = space[reading.gives], space["logp"]
    slope = None
    if reading.gives in SLOPES:
        slope = torch.zeros_like(logp)
        if value.requires_grad:
            (slope,) = torch.autograd.grad(value.sum(), logp)
    return value.detach(), slope


def measured(bug, engine):
    batch, stage = load(bug).batch(), load(bug).reading.gives
    trace = gradebook.run(engine, batch)
    slope = trace.slope(stage) if stage in SLOPES else None
    return getattr(trace, stage), slope


def same(bug, found, expected):
    """Equal on every row, or on every unmasked token."""
    batch = load(bug).batch()
    for a, b in zip(found, expected):
        if b is None:
            b = None if a is None else torch.zeros_like(a)
        if a is None:
            continue
        a, b = a.double(), b.double()
        if a.shape == batch.mask.shape and load(bug).reading.gives != "token_reward":
            a, b = a[batch.mask], b[batch.mask]
        if not torch.allclose(a, b, equal_nan=False, **NEAR):
            return False
    return True


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_every_bug_has_an_exercise_and_exactly_one_rule(bug):
    reading = load(bug).reading
    assert reading.question.endswith("?") and len({*reading.lines}) == 3
    assert reading.said[reading.answer].startswith("Right: ")
    assert sum(said.startswith("Right: ") for said in reading.said) == 1
    assert all(said.endswith(".") for said in reading.said)
    assert max(map(len, (*reading.lines, *reading.code.splitlines()))) <= 88
    assert [bug in bugs for bugs in by_rule().values()].count(True) == 1
    assert bug not in siblings(bug) and len(siblings(bug)) >= 2


def test_every_rule_has_bugs_and_none_is_left_over():
    assert [*by_rule()] == [*RULES]
    assert all(rule.text.endswith(".") for rule in RULES.values())


RUNNING = [bug for bug in gradebook.BUGS if load(bug).reading.gives]


@pytest.mark.parametrize("bug", RUNNING)
def test_the_right_line_gives_the_correct_numbers_and_the_trainers_the_faulty(bug):
    reading = load(bug).reading
    correct, faulty = gradebook.CORRECT, gradebook.bug(bug).engine
    assert same(bug, results(bug, reading.answer), measured(bug, correct))
    assert same(bug, results(bug, reading.trainer), measured(bug, faulty))
    (other,) = {0, 1, 2} - {reading.answer, reading.trainer}
    assert not same(bug, results(bug, other), measured(bug, correct))
    assert not same(bug, results(bug, reading.trainer), measured(bug, correct))


def test_no_exercise_runs_on_numbers_of_its_own_unless_it_is_about_rounding():
    others = {*gradebook.BUGS} - {*RUNNING}
    assert others and all(gradebook.bug(name).loses for name in others)


def test_of_two_exercises_about_rounding_the_right_lines_leave_no_rounding():
    dust, once = load("float32_dust").reading, load("one_pass_variance").reading
    away = []
    for number in range(3):
        reward = torch.full((7,), 100.1, dtype=torch.float64)
        space = {"reward": reward}
        exec(dust.with_line(number), space)
        away.append(float((space["baseline"] - reward).abs().max()))
    assert away[dust.answer] < 1e-12 < 1e-7 < away[dust.trainer] < 1e-4 < away[2]
    spreads = []
    for number in range(3):
        space = {"siblings": torch.tensor([0.9, 0.9, 0.9])}
        exec(once.with_line(number), space)
        spreads.append(float(space["variance"]))
    assert abs(spreads[once.answer]) < 1e-12 < abs(spreads[once.trainer])
    assert spreads[2] == -spreads[once.trainer]
