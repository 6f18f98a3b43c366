"""Proof: whether a log proves a bug that fits it, or only raises the question. No
engine runs here."""

import numpy as np

from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.suspects import RAW, Suspect
from gradebook.logs.logged_steps import LoggedSteps

LEAST_NUMBERS = 6
"""A bug that is proved by its arithmetic needs so many different numbers: a computation
that nobody knows has two or three numbers in common with it by chance. It is twice
those: on 79 made logs of one to twelve numbers that no bug gives (2026-11-29), no bug
fitted, whatever this number was."""


def verdict_of(
    suspect: Suspect,
    steps: LoggedSteps,
    cells: np.ndarray | None,
    coarse: bool,
    declaration: Declaration,
) -> str:
    """The verdict for a bug that fits while no legitimate computation does: "suspect"
    if no declaration could explain the numbers, or if the actual one does not.
    `cells`: the groups of its engine, for one that cuts rows by place. `coarse`: a type
    of few digits explains the numbers as well."""
    record, columns = suspect.record, suspect.columns
    if suspect.decides_votes:
        proved = columns[0] in declaration.counts & declaration.trusted
    elif record.proof == "column":
        proved = declaration.trusted.issuperset(columns)
    elif record.proof == "declaration":
        return "other" if declaration.decides else "asks"
    elif record.evidence is not None:
        proved = suspect.is_shown
    elif cells is not None:
        proved = mixes_strides(suspect, steps, cells)
    else:
        values = steps.advantage[np.isfinite(steps.advantage)]
        many = len(np.unique(values.round(9))) >= LEAST_NUMBERS
        proved = many and not coarse
    return "suspect" if proved else "asks"


def mixes_strides(suspect: Suspect, steps: LoggedSteps, cell: np.ndarray) -> bool:
    """Whether the log proves that rows were grouped by position. Three conditions:
    The groups are unequal and each is one run of rows. The stride is the commonest or
    the largest group size. Some strides hold exactly one prompt while others mix
    several, or rows without a stride get reward / eps.

    One step with both kinds of stride is enough. If each step has one kind, it takes
    more than two steps, and the steps with mixed strides must be exactly the steps
    that lost rows or prompts.

    `cell` as `numbers.cut_groups`, float64 [R]."""
    settings, batch = suspect.settings, steps.batch
    kept = ((batch.tokens > 0) & batch.scored).numpy() & np.isfinite(cell)
    if settings.mask_no_eos:
        kept &= batch.eos.numpy()
    prompt, cell = steps.prompt[kept], cell[kept].astype("int64")
    size = np.bincount(prompt)
    sizes = size[size > 0]
    runs = 1 + np.count_nonzero(np.diff(prompt))
    stride = suspect.group_size or sizes.max()
    usual = np.bincount(sizes).argmax(), sizes.max()
    if runs != len(sizes) or len(set(sizes)) < 2 or stride not in usual:
        return False
    has_cell = cell >= 0
    pairs = cell[has_cell] * len(size) + prompt[has_cell]
    pieces, shared = np.unique(pairs, return_counts=True)
    cell_of, prompt_of = np.divmod(pieces, len(size))
    several = np.bincount(cell_of)[cell_of] > 1
    whole = ~several & (shared == size[prompt_of]) & (shared >= stride)
    step = steps.groups.step
    mixed, pure = {*step[prompt_of[several]]}, {*step[prompt_of[whole]]}
    if not has_cell.all():
        # Rows past the last stride that get reward / eps are nobody's design. Rows of
        # an incomplete group that get 0 may be.
        divides = suspect.tail == RAW and settings.scale != "none"
        return bool(mixed) or divides
    if mixed & pure:
        return True
    full = stride * (settings.prompts_per_step or 0)
    rows = np.bincount(steps.step_of[kept])
    few = np.bincount(step[prompt], size[prompt] < stride) > 0
    short = {*np.flatnonzero(few | (rows < full))}
    both = bool(mixed) and bool(pure) and len(mixed) + len(pure) > 2
    return both and mixed <= short and not pure & short
