"""Training runs with 32 seeds, beside the figures of the prototype.

    python tests/bench/consequences.py [--seeds 32] [BUG ...]

Prints for every row the measure under both engines, the paired difference
with its 95 % interval, and whether it agrees with the prototype: the
differences are at most the sum of both half-widths apart, and what was
exactly zero there is exactly zero here.

The prototype's figures came with a sketch of its tasks. What the sketch
left open was searched until sizes and directions agreed, so agreement is
weak evidence for *lock*, of which about 20 variants were tried:
* spell: eight tokens with EOS, two of seven letters a word, drawn once; the
  policy sees the position and not what it wrote before.
* lock: to run out of turns costs twice what quitting costs, and the loss
  weighs each rollout the same ("grpo"). With "dapo" the difference at -0.1
  is only +0.5.
* All engines train the rows of flat groups, as trainers do (unless
  that is the bug).
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch  # noqa: E402

from gradebook.training import train  # noqa: E402
from gradebook.training.study import (  # noqa: E402
    Run,
    effect,  # noqa: E402
    studied,
    study,
)

ANY = None
ROUNDED = 0.001
"""What rounding can do to a difference of two means that are printed with
three digits."""
FIGURES = [
    # bug, slider, optimizer, update, measure, difference, half-width
    ("no_eos_outliers", 0.0, "adam", 200, "success", 0.009, 0.002),
    ("no_eos_outliers", 1.1, "adam", 200, "success", -0.984, ANY),
    ("no_eos_outliers", 1.5, "adam", 200, "success", -0.985, ANY),
    ("partial_groups", 0.0, "adam", 50, "success", 0.0, 0.0),
    ("partial_groups", 0.0, "adam", 200, "success", 0.0, 0.0),
    ("partial_groups", 0.5, "adam", 50, "success", -0.171, 0.018),
    ("partial_groups", 0.5, "adam", 200, "success", -0.045, ANY),
    ("partial_groups", 5.0, "adam", 50, "success", -0.337, 0.018),
    ("partial_groups", 5.0, "adam", 200, "success", -0.156, 0.020),
    ("partial_groups", 5.0, "sgd", 200, "success", 0.053, ANY),
    ("partial_groups", 5.0, "sgd5", 200, "success", -0.485, ANY),
    ("zero_std_kl", 0.0, "adam", 200, "letters_in_use", 0.0, 0.0),
    ("zero_std_kl", 0.04, "adam", 200, "letters_in_use", 0.97, 0.11),
    ("zero_std_kl", 0.04, "adam", 200, "success", 0.0, ANY),
    ("zero_std_kl", 0.3, "adam", 50, "success", -0.024, 0.006),
    ("double_normalization", -0.1, "adam", 200, "wasted_turns", 1.79, 0.43),
    ("double_normalization", -0.1, "adam", 200, "success", 0.0, ANY),
    ("double_normalization", -0.25, "adam", 200, "wasted_turns", 0.08, 0.03),
    ("double_normalization", -0.5, "adam", 200, "wasted_turns", 0.08, 0.03),
    ("rejected_rows", 0.0, "adam", 50, "success", 0.029, 0.005),
    ("rejected_rows", 0.0, "adam", 200, "success", 0.0, ANY),
    ("rejected_rows", 1.0, "adam", 50, "success", -0.090, 0.013),
    ("rejected_rows", 1.0, "adam", 200, "success", -0.027, ANY),
]
"""The prototype's figures, 32 seeds; ANY if it gave no interval. There its
half-width is taken to be this run's: both are over 32 seeds of the same
task. Besides, the rounding of the two printed means is allowed for."""
MORE = {
    "uid_per_rollout": [0.0],
    "micro_batch_means": [64.0],
    "bf16_rewards": [0.0],
    "unscored_rows": [0.0],
    "fan_out": [50.0, 0.0],
    "whole_batch": [0.0],
}
"""What is run besides the slider's default, for bugs that the prototype did
not have: where the effect is off, or turns."""


def agrees(found, difference, half_width):
    if half_width == 0:
        return found.exact
    if half_width is ANY:
        half_width = found.half_width + ROUNDED
    return abs(found.difference - difference) <= found.half_width + half_width


def first_measured(bug, seeds, done):
    """A study that the prototype did not have."""
    one = study(bug)
    for value in (one.slider.default, *MORE.get(bug, ())):
        run = trained(Run(bug, value, "adam", seeds), done)
        for update in one.report:
            found = effect(*run[update][one.measure])
            print(f"  {one.measure} after {update}: {said(found)}", flush=True)


def said(found):
    """Both means, the difference and its interval."""
    if found.exact:
        return f"{found.correct:.3f} / {found.faulty:.3f} (exactly equal)"
    return (
        f"{found.correct:.3f} / {found.faulty:.3f} ({found.difference:+.3f}"
        f" +- {found.half_width:.3f})"
    )


def trained(run, done):
    """update -> measure -> values; says what the run cost."""
    if run not in done:
        begun = time.process_time()
        curves = train.trained(run)
        done[run] = {
            update: {name: values[at] for name, values in curves.values.items()}
            for at, update in enumerate(curves.updates)
        }
        took = time.process_time() - begun
        print(
            f"{run.bug} {run.value:g} {run.optimizer}: {took:.1f} s of"
            f" processor time, {took / run.seeds * 16:.1f} s for 16 seeds"
        )
    return done[run]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("bugs", nargs="*", default=studied())
    asked = parser.parse_args()
    torch.set_num_threads(1)
    done = {}
    for bug, value, kind, update, measure, size, half in FIGURES:
        if bug not in asked.bugs:
            continue
        run = trained(Run(bug, value, kind, asked.seeds), done)
        values = run[update][measure]
        found = effect(values[0], values[-1])
        width = "" if half is ANY else f" +- {half:.3f}"
        verdict = "agrees" if agrees(found, size, half) else "DIFFERS"
        print(
            f"  {measure} after {update}: {said(found)}, prototype"
            f" {size:+.3f}{width}: {verdict}",
            flush=True,
        )
    known = {figure[0] for figure in FIGURES}
    for bug in asked.bugs:
        if bug not in known:
            first_measured(bug, asked.seeds, done)


if __name__ == "__main__":
    main()
