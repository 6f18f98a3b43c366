"""What the check promises, measured on the made logs of `formulas`."""

import formulas
import numpy as np
from asking import named, verdict_on


def inside(seed):
    """Nobody innocent is accused; the right name is told, exit code 0."""
    name, estimator, frame = formulas.innocent(seed)
    # A log that says which rows were accepted, while all vote, is of the kind `masked`.
    said = verdict_on(frame.drop(columns="accepted", errors="ignore"))
    right = said.exit_code == 0 and estimator in named(said)
    return name, "broken" if said.exit_code == 1 else right, said


def outside(seed):
    """Exit code 2, and no bug."""
    name, frame = formulas.unknown(seed)
    said = verdict_on(frame)
    return name, said.exit_code == 2 and not said.bug or "broken", said


def faults(seed):
    """Structure proves a bug, exit code 1; others are asked about."""
    name, proved, frame = formulas.fault(seed)
    said = verdict_on(frame)
    if proved:
        right = (said.exit_code, said.bug) == (1, name)
    else:
        right = said.exit_code != 1 and name in (said.bug, *said.asks)
    return f"{name}{', proved' * proved}", right or "broken", said


def misdeclared(seed):
    """A wrong declaration never gets exit code 0."""
    drawn = formulas.misdeclared(seed)
    if drawn is None:
        return "", True, None
    declared, name, frame = drawn
    said = verdict_on(frame, declared={"estimator": declared})
    return f"{name}, {declared} declared", said.exit_code != 0 or "broken", said


def parts(seed):
    """Rewards of several functions: the computation and the ratio of the weights."""
    name, estimator, weights, frame = formulas.parts(seed)
    # As in `inside`: if a log says which rows were accepted, it is asked about them.
    said = verdict_on(frame.drop(columns="accepted", errors="ignore"))
    ratio = np.array(said.weights) if len(said.weights) == len(weights) else np.zeros(1)
    same = np.allclose(ratio / ratio.max(), np.array(weights) / max(weights), rtol=2e-3)
    right = said.exit_code == 0 and estimator in named(said) and same
    return name, "broken" if said.exit_code == 1 else bool(right), said


def shown(kind):
    """What a log shows if nothing fits; or a computation that is known to do so."""

    def told(seed):
        drawn = formulas.shown(seed, kind)
        if drawn is None:
            return "", True, None
        name, frame = drawn
        said = verdict_on(frame)
        right = said.left_over in SAYS.get(kind, (kind,))
        # A floor may be a computation of its own, and pieces are those of a bug.
        right |= kind == "floor" and " as the least" in said.convention
        right |= kind == "pieces" and _asks_about_pieces(said, frame)
        return name, "broken" if said.exit_code == 1 else right, said

    return told


def _asks_about_pieces(said, frame):
    """The question is whether the two pieces of each prompt were meant."""
    uid = next(name for name in ("uid", "prompt_id", "group_id") if name in frame)
    size = frame[uid].value_counts().min() // 2
    strides = f"Partial groups, GRPO, group size {size})"
    return (said.exit_code, said.bug) == (
        2,
        "partial_groups",
    ) and strides in said.sentence


SAYS = {
    "length": ("length", "shorter"),
    "floor": ("floor", "zeroed"),
    # The log may have a rollout id that numbers its rows.
    "one row": ("one row", "no vote"),
}
"""Kind -> the findings that name it, if not itself."""


def turned(seed):
    """A turned order is a finding, never exit code 1."""
    name, frame = formulas.turned(seed)
    said = verdict_on(frame)
    right = said.order is not None and said.order.is_turned
    return name, "broken" if said.exit_code == 1 else right, said


def masked(seed):
    """Masked rows that vote are asked about, whatever advantage they have."""
    name, frame = formulas.masked(seed)
    said = verdict_on(frame)
    right = said.exit_code == 2 and "rejected_rows" in (said.bug, *said.asks)
    return name, "broken" if said.exit_code == 1 else right, said


def copies(seed):
    """Copies without a vote change no name."""
    estimator, name, frame = formulas.copies(seed)
    # As in `inside`: if a log says which rows were accepted, it is asked about them.
    said = verdict_on(frame.drop(columns="accepted", errors="ignore"))
    right = estimator in named(said) and said.exit_code == 0
    return name, "broken" if said.exit_code == 1 else right, said


OLD = {kind.__name__: kind for kind in (inside, outside, faults, misdeclared)}
KINDS = {**OLD}
KINDS |= {"parts": parts, **{kind: shown(kind) for kind in formulas.beside()}}
KINDS |= {kind.__name__: kind for kind in (turned, masked, copies)}
"""Kind of log -> what it has to be told."""


def measured(kind, logs, first=0):
    """Told right and promises broken of so many logs; prints each log that is told
    wrong, and the kind's line."""
    told, seed = [], first
    while len(told) < logs:
        name, right, said = KINDS[kind](seed)
        if right is not True:
            print(f"{kind} {seed}, {name}: exit {said.exit_code}: {said.sentence}")
        told += [right] if said is not None else []
        seed += 1
    right, broken = told.count(True), told.count("broken")
    print(f"{kind}: {logs} logs, right {right}, promises broken {broken}", flush=True)
    return right, broken
