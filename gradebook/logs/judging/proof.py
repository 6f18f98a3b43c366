"""Proof: whether what a log shows proves a bug, or only asks about it."""

from __future__ import annotations

import numpy as np

from gradebook.cases.record import Bug
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.reading import Reading
from gradebook.logs.judging.suspects import Suspect, cuts_by_place, trace

DIFFERENT = 6
"""So many different advantages prove a formula that no exact one gives."""

HOW_ROWS_COUNT = ("credited", "counted")
"""Stages that decide which rows count: what was intended is never in a log."""

ROWS = 200_000
"""So many rows are looked at for a proof."""


def proved(suspect: Suspect, steps: LoggedSteps, asked: Asked) -> bool:
    """No declaration could excuse these numbers, or what was declared does
    not."""
    record = suspect.record
    if record.stage in HOW_ROWS_COUNT:
        column = main_column(record)
        declared = column in asked.counts
        return declared and column in asked.trusted
    if record.proof == "column":
        return all(c in asked.trusted for c in telling_columns(record))
    if record.proof == "declaration":
        return False
    if cuts_by_place(suspect.bug):
        return mixes_strides(suspect, steps)
    if record.loses.startswith("float32"):
        return False  # shown by its numbers alone: see `float32`
    values = steps.advantage[np.isfinite(steps.advantage)]
    return len(np.unique(values.round(9))) >= DIFFERENT


def verdict_of(suspect: Suspect, steps: LoggedSteps, asked: Asked) -> str:
    """What a bug is called that fits where no reading does."""
    if proved(suspect, steps, asked):
        return "suspect"
    intent = suspect.record.stage in HOW_ROWS_COUNT
    if asked.is_declared and suspect.record.proof == "declaration" and not intent:
        return "other"
    return "asks"


def telling_columns(record: Bug) -> tuple[str, ...]:
    """Columns of a log whose meaning the bug rests on."""
    flat = [c if isinstance(c, str) else c[0] for c in record.columns]
    return tuple(c for c in flat if c != "prompt") or tuple(flat)


def main_column(record: Bug) -> str:
    """The column that says how rows count."""
    return telling_columns(record)[0]


def mixes_strides(suspect: Suspect, steps: LoggedSteps) -> bool:
    """The rows were cut by their position: groups are unequal and stand in
    contiguous runs, the stride is the commonest or largest group size, and
    some strides hold exactly one prompt while others mix several. Where
    whole steps are pure or mixed, it takes more than two steps, and more
    than one change in the middle of the run."""
    steps = _first_steps(steps)
    cells = trace(steps, suspect).group
    prompt = steps.batch.prompt_index.numpy()
    kept = (steps.batch.tokens > 0).numpy() & steps.batch.scored.numpy()
    if suspect.settings.mask_no_eos:
        kept &= steps.batch.eos.numpy()
    step = steps.step_of[kept]
    prompt, cells = prompt[kept], cells[kept]
    runs = 1 + int(((np.diff(prompt) != 0) | (np.diff(step) != 0)).sum())
    names, size = np.unique(prompt, return_counts=True)
    stride = suspect.group_size or int(size.max())
    usual = (int(np.bincount(size).argmax()), int(size.max()))
    if runs != len(names) or len(set(size)) < 2 or stride not in usual:
        return False
    own = dict(zip(names.tolist(), size.tolist()))
    pure, mixed = {}, {}
    for cell in np.unique(cells[cells >= 0]):
        rows = cells == cell
        inside = np.unique(prompt[rows])
        where = int(step[rows][0])
        if len(inside) > 1:
            mixed[where] = True
        elif own[int(inside[0])] == rows.sum():
            pure[where] = True
    tail = bool((cells < 0).any())
    if not mixed or not (pure or tail):
        return False
    if set(pure) & set(mixed) or (tail and not pure):
        return True
    order = [where in mixed for where in sorted({*pure, *mixed})]
    changes = int(np.abs(np.diff(np.array(order, dtype=int))).sum())
    short = min(sum(order), len(order) - sum(order))
    return len(order) > 2 and (changes > 1 or short == 1)


def _first_steps(steps: LoggedSteps) -> LoggedSteps:
    size = steps.batch.step_rows.numpy()
    at = np.cumsum(size) <= max(ROWS, size[0])
    return steps.of_steps(at)


def flat_rows(steps: LoggedSteps) -> np.ndarray:
    """bool [R] the rewards of the row's group, of two or more rows, are
    equal."""
    groups, prompt = steps.groups, steps.batch.prompt_index.numpy()
    reward = steps.batch.reward.numpy().astype("float64")
    differs = np.bincount(prompt, reward != reward[groups.first][prompt])
    return (differs == 0)[prompt] & (groups.size > 1)[prompt]


def equal_siblings(steps: LoggedSteps) -> np.ndarray:
    """bool [R] the other rewards of the row's group are equal, or all but."""
    reward = steps.batch.reward.numpy().astype("float64")
    prompt = steps.batch.prompt_index.numpy()
    order = np.lexsort((reward, prompt))
    size = steps.groups.size
    first = np.cumsum(size) - size
    sorted_reward = reward[order]
    out = np.zeros(len(reward), dtype=bool)
    for start, n in zip(first, size):
        x = sorted_reward[start : start + n]
        near = 1e-3 * max(abs(x[0]), abs(x[-1]), 1e-12)
        if n < 3:
            continue
        if x[-1] - x[1] <= near:
            out[order[start]] = True
        if x[-2] - x[0] <= near:
            out[order[start + n - 1]] = True
        if x[-1] - x[0] <= near:
            out[order[start : start + n]] = True
    return out


def on_float32_lattice(
    steps: LoggedSteps, rows: np.ndarray, readings: list[Reading]
) -> np.ndarray:
    """bool [R]: the advantage of one of `rows`, in a flat group, is what a
    float32 mean leaves: q / (q c + eps), q a multiple of the scores' spacing,
    and c what the deviation makes of it."""
    at = np.flatnonzero(rows)
    n = steps.groups.size[steps.batch.prompt_index.numpy()[at]].astype("float64")
    score = np.abs(steps.batch.reward.numpy()[at]).astype("float32")
    size = np.abs(steps.advantage[at])
    spacing = np.spacing(score).astype("float64")
    near = np.zeros(len(size), dtype=bool)
    eps = {r.eps for r in readings if r.divides}
    for multiple in (0.25, 0.5, *range(1, 33)):
        q = multiple * spacing
        due = [q / (q * c + one) for one in eps for c in (1.0, np.sqrt(n / (n - 1)))]
        due += [q / one for one in eps if one]
        if any(not r.divides for r in readings):
            due.append(q)
        for each in due:
            near |= np.abs(size - each) <= 0.02 * each
    near &= score * 1024 != np.round(score * 1024)
    lies = np.zeros(len(rows), dtype=bool)
    lies[at] = near
    return lies


def one_pass(
    steps: LoggedSteps, baseline: np.ndarray, rows: np.ndarray, ddof: int, eps: float
) -> np.ndarray:
    """int [R] for `rows` whose siblings are all but equal: 2 where a float32
    order of summation gives the logged deviation within 4 units in the last
    place, 1 inside the bound of a one-pass variance, 0 outside."""
    reward = steps.batch.reward.numpy().astype("float64")
    prompt = steps.batch.prompt_index.numpy()
    shown = np.zeros(len(rows), dtype="int64")
    for row in np.flatnonzero(rows):
        mates = np.flatnonzero(prompt == prompt[row])
        others, own = reward[mates[mates != row]], reward[row]
        away, logged, n = own - baseline[row], steps.advantage[row], len(others)
        if away == 0 or not logged or n < 2:
            continue
        undivided = abs(away - logged) <= 1e-4 * abs(away)
        spread = away / logged - eps
        variance = max(spread, 0) ** 2 * (n - ddof) / n
        bound = 8 * 2.0**-24 * float((reward[mates] ** 2).sum())
        if variance <= bound + others.var() or undivided:
            shown[row] = 1
        for each in _variances(others.astype("float32"), np.float32(own)):
            unit = float(np.spacing(np.float32((others**2).mean())))
            swallowed = undivided and not each > 0
            if swallowed or not undivided and abs(variance - each) <= 4 * unit:
                shown[row] = 2
    return shown


def _variances(x: np.ndarray, own: np.float32) -> list[float]:
    """E[x^2] - E[x]^2 in float32, summed in the orders that trainers use."""
    n, double = np.float32(len(x)), x.astype("float64")
    whole = np.append(x, own)
    sums = (
        (double.sum(), (x * x).astype("float64").sum()),
        (np.add.accumulate(x)[-1], np.add.accumulate(x * x)[-1]),
        (x.sum(), (x * x).sum()),
        (whole.sum() - own, (whole * whole).sum() - own * own),
    )
    means = [(np.float32(first) / n, np.float32(square) / n) for first, square in sums]
    return [float(square - mean * mean) for mean, square in means]
