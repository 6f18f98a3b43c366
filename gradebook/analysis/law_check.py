"""Whether an engine, or any function from rewards to advantages, keeps a law.

step = step_of([[1.0, 0.0], [1.0, None]])        # groups of rewards
values = on_groups(function)                     # groups in, groups out
exact = lambda step: [0.0] * len(step)           # no rounding
judge("shift", values, [step], Settings(), exact).answer  # 'holds'
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import getdoc
from operator import itemgetter
from typing import Any, NamedTuple

import torch

from gradebook.analysis import laws
from gradebook.analysis.laws import GRADIENT, LAWS, TOKENS, FollowUp, Step, Values
from gradebook.core.batch import Batch
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.core.formatting import SHOWS, counted, pair, same
from gradebook.core.settings import Settings
from gradebook.core.tolerance import EXACT, LAW_SPACINGS, MOST_ROUNDING, WHITENS
from gradebook.core.vocabulary import BASELINES, GROUP, SCALES
from gradebook.engine.grouping import present, score
from gradebook.engine.pipeline import CORRECT, Engine, run

HOLDS, BROKEN, REFUSED = "holds", "broken", "refused"
BY_CONVENTION, NOT_MEASURED = "by convention", "not measured"
PADDED = ("padding", "padding_tokens", "moved_tokens", "inserted_text")
"""The laws whose follow-ups make the batch wider."""


class Outcome(NamedTuple):
    """A law's answer on a step: HOLDS, BROKEN, REFUSED, BY_CONVENTION or NOT_MEASURED,
    and why. If it is broken: the follow-up that shows it, the row (the first row of a
    sum), the expected value and the actual one."""

    answer: str
    sentence: str
    row: int = -1
    due: float = 0.0
    value: float = 0.0
    follow_up: FollowUp | None = None


def paragraphs(name: str) -> list[str]:
    """What a law says, and what a step must have to test it. Raises GradebookError
    for a name not in LAWS."""
    # A law's docstring has these two paragraphs and no more (a test asks for it): an
    # exported pytest file holds the law's source, and says it there, too.
    doc = getdoc(LAWS[choice(name, LAWS, "laws")]) or ""
    return [" ".join(paragraph.split()) for paragraph in doc.split("\n\n")]


def words(name: str) -> str:
    """What the law says, in one sentence."""
    return paragraphs(name)[0]


def couples_prompts(settings: Mapping[str, Any]) -> str:
    """The setting that compares rows of all prompts by design, as 'baseline
    batch_mean', or ''."""
    if BASELINES[settings["baseline"]].couples_prompts:
        return f"baseline {settings['baseline']}"
    if SCALES[settings["scale"]].couples_prompts:
        return f"scale {settings['scale']}"
    return "whiten_tokens" if settings["whiten_tokens"] else ""


def convention(name: str, settings: Mapping[str, Any]) -> str:
    """The setting by which a trainer breaks the law by design, or ''."""
    baseline, scale = BASELINES[settings["baseline"]], SCALES[settings["scale"]]
    skips, evaluation = settings["skip_flat"], settings["evaluation"]
    couples = couples_prompts(settings)
    trains_flat = skips == "never" or (skips == "training" and evaluation)
    # The row farthest from its siblings has the smallest divisor. That keeps the order
    # only if the rows' distances are those from their own siblings.
    from_siblings = baseline.compares == GROUP and not baseline.needs
    turns = scale.others and not from_siblings
    for broken, reason, applies in (
        (("order", "missing"), "evaluation takes each prompt's first row", evaluation),
        (PADDED, "eos_by_width", settings["eos_by_width"]),
        (("flat_gradient",), f"skip_flat {skips}", trains_flat),
        *conventions_of_tokens(settings, couples),
        (baseline.breaks, f"baseline {baseline.name}", True),
        (("scale",), "reward_bias", settings["reward_bias"]),
        (("other_prompts", "lost_row", "shift", "scale"), couples, couples),
        (("shift", "scale"), "reward_clip", settings["reward_clip"] is not None),
        (scale.breaks, f"scale {scale.name}", True),
        (("rising",), f"baseline {baseline.name}, scale {scale.name}", turns),
        (("flat",), "eps 0", scale.is_std and not settings["eps"]),
        (("zero_sum", "flat"), "whiten_tokens", settings["whiten_tokens"]),
        (("rising",), "reward_scaling below 0", settings["reward_scaling"] < 0),
    ):
        if applies and name in broken:
            return reason
    return ""


def conventions_of_tokens(
    settings: Mapping[str, Any], couples: str
) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """Laws that are broken by design, the reason, and whether it applies: by the
    settings of length, filter, tokens and KL."""
    estimator, score = settings["kl_estimator"], settings["kl_score"]
    undiscounted = settings["credit"] == "to_go" and settings["gamma"] == 1
    counts_tools = settings["clock"] == "all" and settings["credit"] != "row"
    long = settings["overlong_limit"] is not None
    yield ("inserted_text",), "clock all", counts_tools and not undiscounted
    yield ("reference",), "kl_estimator k1", estimator == "k1" and not score
    yield ("reference",), "kl_estimator k2, kl_score", estimator == "k2" and score
    yield ("reference",), "off_policy reject", settings["off_policy"] == "reject"
    yield ("scale", "flat", "rising"), "overlong_limit", long
    yield ("missing",), "filter_flat", settings["filter_flat"]
    yield ("kept_prompts",), couples, bool(couples)


def judge(
    name: str,
    values: Values,
    steps: list[Step],
    settings: Mapping[str, Any],
    allowed: Callable[[Step], Sequence[float]],
    by_design: str = "",
) -> Outcome:
    """Whether a trainer keeps the law on training steps; if several follow-ups break
    it, the largest violation.

    values     the trainer: a number (or a list of numbers) a row, by step
               and settings; a GradebookError is a refusal
    settings   its convention, all keys of Settings
    allowed    how far rounding may move the value of each row of a step
    by_design  why the trainer breaks the law by design; "" if it does not
    """
    if by_design:
        return Outcome(BY_CONVENTION, f"Broken by design: {by_design}.")
    refusals: list[str] = []

    def safe(step: Step, settings: Mapping[str, Any]) -> list[Any]:
        try:
            return values(step, settings)
        except GradebookError as error:
            refusals.append(str(error))
            return []

    ways = 0
    violations: list[tuple[float, FollowUp, int, float, float]] = []
    for follow_up, lines in laws.tried(LAWS[name], safe, steps, settings):
        noise = dict(zip(laws.due_of(follow_up.step), allowed(follow_up.step)))
        certain = [  # NaN is no rounding
            (row, due, value, size)
            for row, due, value, size in lines
            if noise[row] <= MOST_ROUNDING or math.isnan(value)
        ]
        ways += bool(certain)
        for row, due, value, size in certain:
            distance = abs(due - value)
            distance = math.inf if math.isnan(distance) else distance
            slack = _rounding(follow_up, row, size, noise)
            if not _is_kept(follow_up, due, value, slack):
                violations.append((distance, follow_up, row, due, value))
    if violations:
        _, follow_up, row, due, value = max(violations, key=itemgetter(0))
        sentence = _told(follow_up, row, due, value, kind_of(name))
        return Outcome(BROKEN, sentence, row, due, value, follow_up)
    if ways:
        return Outcome(HOLDS, f"Tried in {counted(ways, 'way')}.")
    if refusals:
        return Outcome(REFUSED, refusals[0])
    return Outcome(NOT_MEASURED, paragraphs(name)[-1])


def _is_kept(follow_up: FollowUp, due: float, value: float, slack: float) -> bool:
    if follow_up.falls:
        return value < due - EXACT
    if follow_up.rises and value > due:
        return True
    return same(due, value) or abs(due - value) <= slack


def _rounding(
    follow_up: FollowUp, row: int, size: float, noise: Mapping[int, float]
) -> float:
    """How far rounding alone may move what a follow-up compares: the value of a row, of
    this size, or the sum of a prompt. `noise` is how far rounding may move each row's
    value."""
    if follow_up.total:  # a sum moves as far as its terms together, and as is printed
        return sum(noise[row] for row in follow_up.due) + size * SHOWS
    return noise[row] + size * follow_up.slack


NAMED = {
    "advantage": "advantage",
    "token_advantage": "advantage of a token",
    "gradient": "gradient at a token",
}
"""What a law looks at, a field of a trace, in words."""


def kind_of(name: str) -> str:
    """What the law looks at: a field of a trace."""
    if LAWS[name] in GRADIENT:
        return "gradient"
    return "token_advantage" if LAWS[name] in TOKENS else "advantage"


def _told(follow_up: FollowUp, row: int, due: float, value: float, kind: str) -> str:
    expected, actual = pair(due, value, 5 if kind == "gradient" else 3)
    what = f"the {NAMED[kind]} of row {row}"
    sentence = f"{what} is {actual}, and must be {expected}"
    if follow_up.total:
        sentence = f"the advantages of row {row}'s prompt add up to {actual}"
    elif follow_up.rises:
        sentence = f"{what} is {actual}, and a row with a lower reward has {expected}"
    elif follow_up.due[row] is None and follow_up.times == 1:
        sentence = f"{what} changes from {expected} to {actual}"
        sentence += ", and must fall" if follow_up.falls else ""
    if follow_up.what:
        sentence = f"When {follow_up.what}, {sentence}"
    return sentence[0].upper() + sentence[1:] + "."


# A function from groups of rewards to groups of advantages


def step_of(groups: Sequence[Sequence[float | None]]) -> Step:
    """Groups of rewards as a training step; None is missing. Raises GradebookError
    for no rewards, and for one that is not finite."""
    rows = [(n, reward) for n, group in enumerate(groups) for reward in group]
    if not rows:
        raise refuse("groups of rewards", "none", "reward")
    batch = Batch(
        prompt=[prompt for prompt, _ in rows],
        reward=torch.tensor([reward or 0.0 for _, reward in rows], dtype=torch.double),
        scored=[reward is not None for _, reward in rows],
    )
    return steps_of(batch)[0]


def groups_of(step: Step) -> list[list[float | None]]:
    """The step's rewards by prompt; None if a row has none."""
    return [
        [row["reward"] if row["credited"] else None for row in rows]
        for rows in laws.grouped(step, "prompt")
    ]


def on_groups(
    function: Callable[[list[list[float | None]]], Sequence[Sequence[float]]],
) -> Values:
    def values(step: Step, settings: Mapping[str, Any]) -> list[float]:
        advantage, groups = {}, function(groups_of(step))
        for rows, group in zip(laws.grouped(step, "prompt"), groups, strict=True):
            for row, value in zip(rows, group, strict=True):
                advantage[row["row"]] = float(value)
        return [advantage[row["row"]] for row in step]

    return values


# An engine


def steps_of(batch: Batch) -> list[Step]:
    """The batch step by step, with its defaults; log-probabilities only if it has
    them."""
    credited = CORRECT.credited(batch)
    columns = {name: getattr(batch, name) for name in sorted(COLUMNS) if name != "step"}
    columns |= {
        "row": torch.arange(batch.rows),
        "mask": batch.mask.int(),
        "credited": credited,
        "counted": CORRECT.counted(batch, credited & present(batch)),
        "valued": (batch.kept_steps > 0) & present(batch),
    }
    cells = {name: v.tolist() for name, v in columns.items() if v is not None}
    steps: list[Step] = [[] for _ in range(batch.step_count)]
    for step, *row in zip(batch.step_index.tolist(), *cells.values()):
        steps[step].append(dict(zip(cells, row)))
    return steps


def on_engine(engine: Engine, batch: Batch, kind: str = "advantage") -> Values:
    """What an engine gives each row: a field of its trace, of a field by token the
    numbers of the row's unmasked tokens. `batch` gives the float type."""

    def values(step: Step, settings: Mapping[str, Any]) -> list[Any]:
        results = getattr(run(engine, batch_of(step, batch, settings)), kind)
        if results.dim() == 1:
            return results.tolist()
        return [laws.unmasked(row, x) for row, x in zip(step, results.tolist())]

    return values


def batch_of(step: Step, like: Batch, settings: Mapping[str, Any]) -> Batch:
    columns = {n: [row[n] for row in step] for n in COLUMNS if n in step[0]}
    reward = torch.tensor(columns.pop("reward"), dtype=like.reward.dtype)
    return Batch(reward=reward, **columns, settings=Settings(**settings))


def check(name: str, engine: Engine, batch: Batch) -> Outcome:
    """Whether an engine keeps the law on a batch. Raises GradebookError as the engine
    does."""
    kind = kind_of(name)
    if kind != "gradient":
        run(engine, batch)

    def allowed(step: Step) -> list[float]:
        """How far rounding may move each advantage: the rounding of the row's score,
        divided by the row's divisor."""
        changed = batch_of(step, batch, batch.settings)
        try:
            divisor = run(CORRECT, changed).scale
        except GradebookError:
            return [0.0] * changed.rows
        largest = score(changed).abs().amax().clamp(min=1)
        spacings = LAW_SPACINGS + changed.rows
        noise = spacings * torch.finfo(divisor.dtype).eps * largest / divisor
        if batch.settings.whiten_tokens:
            noise = noise * WHITENS
        return noise.nan_to_num(0, torch.inf).tolist()

    values, settings = on_engine(engine, batch, kind), batch.settings
    by_design = convention(name, settings)
    return judge(name, values, steps_of(batch), settings, allowed, by_design)
