"""Proof: whether what a log shows proves a bug, or only asks about it; and rows
on which only rounding explains it, while a reading fits all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import WRITTEN, distance
from gradebook.logs.judging.reading import Reading, plainness
from gradebook.logs.judging.search import Candidates, Lost, search
from gradebook.logs.judging.suspects import Suspect, cuts_by_place, trace
from gradebook.logs.judging.views import compute
from gradebook.logs.logged_steps import LoggedSteps

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
    if record.evidence is not None:
        return False  # see `lost_digits`, below
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
    return tuple(c for c in flat if c != "prompt") or ("prompt",)


def main_column(record: Bug) -> str:
    """The column that says how rows count."""
    return telling_columns(record)[0]


def mixes_strides(suspect: Suspect, steps: LoggedSteps) -> bool:
    """The rows were cut by their position: groups are unequal and stand in
    contiguous runs, the stride is the commonest or largest group size, and
    some strides hold exactly one prompt while others mix several, or rows
    without a stride get reward / eps. Where whole steps are pure or mixed, it
    takes more than two steps, and mixed are exactly those in which a prompt
    has fewer rows than the stride, or that have fewer prompts than others."""
    rows = steps.batch.step_rows.numpy()
    steps = steps.of_steps(np.cumsum(rows) <= max(ROWS, rows[0]))
    cells = trace(steps, suspect).group
    assert cells is not None
    prompt = steps.batch.prompt_index.numpy()
    kept = (steps.batch.tokens > 0).numpy() & steps.batch.scored.numpy()
    if suspect.settings.mask_no_eos:
        kept &= steps.batch.eos.numpy()
    step, prompt, cells = steps.step_of[kept], prompt[kept], cells[kept]
    size = np.bincount(prompt)
    runs = 1 + int(((np.diff(prompt) != 0) | (np.diff(step) != 0)).sum())
    sizes = size[size > 0]
    stride = suspect.group_size or int(size.max())
    usual = (int(np.bincount(sizes).argmax()), int(size.max()))
    if runs != len(sizes) or len(set(sizes)) < 2 or stride not in usual:
        return False
    cut = cells >= 0
    tail = not bool(cut.all())
    step, prompt, cells = step[cut], prompt[cut], cells[cut]
    _, first, shared = np.unique(
        cells * len(size) + prompt, return_index=True, return_counts=True
    )
    several = np.bincount(cells[first])[cells[first]] > 1
    whole = ~several & (shared == size[prompt[first]]) & (shared >= stride)
    mixed, pure = np.unique(step[first][several]), np.unique(step[first][whole])
    if tail:
        return bool(len(mixed)) or suspect.settings.scale != "none"
    if not len(mixed) or not len(pure):
        return False
    if np.intersect1d(mixed, pure).size:
        return True
    full = stride * (suspect.settings.prompts_per_step or 0)
    short = np.bincount(step, size[prompt] < stride, steps.step_count) > 0
    short |= np.bincount(step, minlength=steps.step_count) < full
    by_size = short[mixed].all() and not short[pure].any()
    return len(mixed) + len(pure) > 2 and bool(by_size)


def find_lost_digits(candidates: Candidates, at: np.ndarray) -> None:
    """Adds bugs that round, each with a reading that fits all rows of the steps
    `at` but those that such a bug alone explains, where what stands there is its
    evidence."""
    prompt = candidates.steps.batch.prompt_index.numpy()
    for record in map(bug, BUGS):
        if record.unexplained is None:
            continue
        rows = record.unexplained(candidates.ruler.rewards, prompt)
        if rows.any() and not rows.all():
            ruler = replace(candidates.ruler, ignored=rows)

            def only(r: Reading, record: Bug = record) -> bool:
                return all(getattr(r, k) == v for k, v in record.reading.items())

            part = search(ruler, candidates.asked, candidates.tick, only)
            candidates.lost += _explained(part, record, rows, at)


def _explained(
    part: Candidates, record: Bug, rows: np.ndarray, at: np.ndarray
) -> list[Lost]:
    """The reading beside which the evidence is best."""
    steps, fits = part.steps, part.readings
    assert record.evidence is not None
    results: list[Lost] = []
    # Where none fits all steps, the reading that fits most.
    order = sorted(fits, key=lambda r: (-fits[r].good[at].sum(), plainness(r)))
    for r in part.fitting(at, WRITTEN)[:8] or order[:1]:
        computed, good = compute(steps, r), fits[r].good
        right = distance(computed.values, steps.advantage) <= part.ruler.base
        odd = rows & ~right & good[steps.step_of]
        shown = record.evidence(
            odd,
            part.ruler.rewards,
            steps.batch.prompt_index.numpy(),
            steps.advantage,
            computed.baseline,
            r.ddof if r.divides else None,
            r.eps,
        )
        good &= steps.total(odd & (shown == 0)) == 0
        hit = good & (steps.total(odd) > 0)
        proved = bool((shown == 2).any())
        words = np.where(hit, "suspect" if proved else "asks", "")
        if hit.any():
            suspect = Suspect(record.name, r.settings)
            results.append(Lost(suspect, r, words, good & ~hit))
            if proved:
                return results[-1:]
    return results[:1]
