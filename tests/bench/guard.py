"""What the guard costs, beside a plain run of the engine.

    python tests/bench/guard.py

Prints ratios of CPU time in one run. The case of each bug that changes advantages is
repeated, with other rewards, to about 1,024 rows. First a healthy step (aim at most 8
plain runs), then the naming of each bug, and of numbers that nothing known gives: after
a healthy step, and at the first step of a run.
Declared is an estimator alone, so that every listed trainer's version of it
is tried.
"""

import statistics
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
import gradebook  # noqa: E402

ROWS, TOKENS = 1024, 64
PLAIN = 10
"""Plain runs before each measured call."""
LABELS = ("prompt", "rollout", "text")
COLUMNS = ("reward", "eos", "scored", "rank", "steps", "kept_steps")


def over(plain, prepare, act, times):
    """Median ratio of the CPU time of `act(prepare())` to that of a plain
    run just before it, after one round that is not measured."""
    found = []
    for _ in range(times + 1):
        given = prepare()
        first = time.process_time()
        for _ in range(PLAIN):
            plain()
        second = time.process_time()
        act(given)
        third = time.process_time()
        found.append((third - second) / (second - first) * PLAIN)
    return statistics.median(found[1:])


def many(name):
    """The case of a bug, repeated: each time with its own labels, and with
    rewards that are a little larger."""
    case = gradebook.load(name).batch()
    times = -(-ROWS // case.rows)
    rows = {
        key: [f"{turn}/{one}" for turn in range(times) for one in values]
        for key in LABELS
        if (values := getattr(case, key)) is not None
    }
    for key in COLUMNS:
        if (values := getattr(case, key)) is not None:
            rows[key] = values.repeat(times)
    width = case.mask.shape[1]
    rows["mask"] = case.mask.repeat(times, max(TOKENS // width, 1))
    turn = torch.arange(times).repeat_interleave(case.rows)
    rows["reward"] = rows["reward"] + turn / 64
    return rows


def declared(settings):
    """The estimator with these settings, or the settings if none has
    them; never eps or ddof, which trainers do not call by name."""
    keys = ("baseline", "scale", "whiten_tokens")
    for name, own in gradebook.ESTIMATORS.items():
        if all(own[key] == settings[key] for key in keys):
            return {"estimator": name}
    return {key: settings[key] for key in (*keys, "whiten_ddof")}


def report(name, rows, own, settings):
    """One line: what naming costs, and what is named."""
    batch = gradebook.Batch(**rows, settings=settings)
    right = gradebook.run(gradebook.CORRECT, batch).advantage
    wrong = torch.rand(batch.rows)
    if name in gradebook.BUGS:
        wrong = gradebook.run(gradebook.bug(name).engine, batch).advantage
    guard = partial(gradebook.Guard, declared=own, action=str)

    def plain():
        gradebook.run(gradebook.CORRECT, batch)

    def trained(steps):
        """A guard that has seen so many healthy steps."""
        one = guard()
        for step in range(steps):
            one.step(step, **rows, advantage=right)
        return one

    def faulty(one):
        one.step(9, **rows, advantage=wrong)
        return one.finding

    if trained(1).finding is not None:
        print(f"{name:21} is right under settings that {own} does not say")
        return
    healthy = over(
        plain,
        partial(trained, 2),
        lambda one: one.step(9, **rows, advantage=right),
        20,
    )
    line = f"{name:21} healthy step {healthy:5.1f}"
    found = faulty(trained(2))
    if found is None:
        print(f"{line}; {batch.rows} rows as they should be")
        return
    later = over(plain, partial(trained, 2), faulty, 7)
    first = over(plain, guard, faulty, 7)
    print(
        f"{line}; naming {later:6.1f}, at the first step {first:6.1f}:"
        f" {found.bug or 'no bug'}, {own}",
        flush=True,
    )


def in_advantages(name):
    """The guard sees advantages alone."""
    return gradebook.bug(name).in_advantages


def main():
    torch.set_num_threads(1)
    print("In plain runs of the engine on the same rows:")
    for name in filter(in_advantages, gradebook.BUGS):
        settings = gradebook.load(name).settings
        report(name, many(name), declared(settings), settings)
    chance = np.random.default_rng(0)
    rows = {
        "prompt": np.arange(ROWS) // 8,
        "reward": chance.random(ROWS),
        "mask": torch.arange(TOKENS) < torch.randint(1, TOKENS, (ROWS, 1)),
    }
    grpo = gradebook.ESTIMATORS["grpo"]
    report("nothing fits", rows, {"estimator": "grpo"}, grpo)


if __name__ == "__main__":
    main()
