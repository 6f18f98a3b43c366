"""`check_log`: files in, a verdict out; `check`: whole steps in, a row per step out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradebook.bugs import BUGS
from gradebook.cases.scenario import bug
from gradebook.core.columns import number
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.formatting import counted
from gradebook.core.lazy_pandas import pd
from gradebook.logs.explore import what_if
from gradebook.logs.judging import of_loss
from gradebook.logs.judging.computation import View
from gradebook.logs.judging.decide import OFF, Judgement, no_steps
from gradebook.logs.judging.declaration import (
    Declaration,
    declaration_of,
    setting_of,
)
from gradebook.logs.judging.fit import ruler_of
from gradebook.logs.judging.judge import each_step, judge
from gradebook.logs.judging.left_over import KL
from gradebook.logs.judging.order import Order, order_of
from gradebook.logs.judging.rounding import Rounding
from gradebook.logs.judging.sentences import (
    REASONS,
    Statement,
    curves_said,
    left_over_words,
    near_words,
    order_words,
    statement_of,
    ties_of,
)
from gradebook.logs.judging.suspects import can_show, telling_columns
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.logged_steps import LoggedSteps
from gradebook.logs.read.files import Paths, each_path
from gradebook.logs.read.formats import OF_GROUPS
from gradebook.logs.read.log_columns import Avoid, unnamed
from gradebook.logs.read.rows import NAMED, Log, read_files, read_frame, read_recording
from gradebook.logs.signal import Signal, signal_of
from gradebook.logs.trl_layout import ASSUMED, TrlLayout, layout_of, logged

if TYPE_CHECKING:
    from gradebook.logs.recording import Recording

BY_WEIGHTS = ("correct", "other", "none fits")
"""Verdicts that other weights of the reward functions would change."""

MOST_TRIED = 2
"""So many other columns are tried in each role: each try checks the whole log, and
there are two roles, so such a log takes at most five times as long."""

OnProgress = Callable[[float, int], object]
"""Called often with the share read and the steps judged. What it raises ends the
check."""


def check_log(
    paths: Paths,
    *,
    columns: Mapping[str, str] | None = None,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
    places: int | None = None,
    declared: Mapping[str, Any] | None = None,
    progress: OnProgress | None = None,
) -> Verdict:
    """The verdict on a log: a file, a directory, an upload, or several of them.

    The arguments are those of `check`; what is given here counts before what a
    recording says. If nothing fits, another column that may name prompts is
    tried. Raises GradebookError for what cannot be read at all.
    """
    files, tell = each_path(paths), progress or (lambda share, steps: None)

    def checked(avoid: Avoid = frozenset()) -> Verdict:
        log = read_files(files, columns, lambda share: tell(share, 0), avoid)
        settings = _settings(log.recording, declared or {})
        trusted = log.columns.trusted | _made(log)
        declaration = declaration_of(settings, group_size, trusted)
        declaration = _with_its_mask(declaration, log)
        read = _read(log, settings)
        if not len(log.table):
            return read
        layout = layout_of(log.table, log.columns, weights, group_size)
        if "prompt" not in log.table and not layout.group_size:
            what = "a column of prompts or group ids, or a group size"
            raise unnamed("prompt", what, log.columns.first)
        steps = logged(log.table, log.columns, layout)
        signal = _signal(steps, log, layout, group_size)
        log.table = pd.DataFrame()  # the steps hold the rows
        ruler = ruler_of(steps, log.types, places)
        j = judge(ruler, declaration, lambda: tell(1.0, steps.step_count))
        return _verdict(replace(read, signal=signal), layout, j)

    verdict = checked()
    if leads_nowhere(verdict):
        verdict = _with_other_columns(verdict, checked)
    functions = verdict.log.columns.functions
    if verdict.verdict == "none fits" and functions:
        guessed = verdict.columns["reward"]
        columns = {**(columns or {}), "reward": "+".join(functions)}
        summed = checked()
        if summed.verdict in ("correct", "other", "asks"):
            note = (
                f"no known computation takes `{guessed}`; one takes the functions' sum"
            )
            return replace(summed, notes=(note, *summed.notes))
    return verdict


def _with_its_mask(declaration: Declaration, log: Log) -> Declaration:
    """The declaration. If it says that lengths decide which rows count, and the log
    has a mask of tokens and no other flag, it means that mask."""
    role = log.columns.role
    flags = {"accepted", "rejected"} & role.keys()
    if "length" not in declaration.counts or "mask" not in role or flags:
        return declaration
    return replace(declaration, trusted=declaration.trusted | {"length"})


def leads_nowhere(verdict: Verdict) -> bool:
    """Whether no computation fits with the columns that were chosen."""
    return verdict.verdict == "none fits" or (
        verdict.judgement is None and verdict.log.broken_cells > 0
    )


def _with_other_columns(
    verdict: Verdict, checked: Callable[[Avoid], Verdict]
) -> Verdict:
    """The verdict with another column for the prompts or the rewards, if a known
    computation fits with it. Otherwise the earlier verdict, with a note of what was
    tried."""
    chosen, tried = verdict.columns, list[str]()
    for role, alternatives in verdict.log.columns.alternatives.items():
        passed = frozenset({(role, chosen.get(role, ""))})
        for name in alternatives[:MOST_TRIED]:
            try:
                other = checked(passed)
            except GradebookError:
                break
            passed |= {(role, name)}
            if other.verdict == "correct":
                note = (
                    f"No known computation fits with {role} = {chosen[role]}. With"
                    f" {role} = {name}, which was tried next, one does."
                )
                return replace(other, notes=(note, *other.notes))
            tried.append(f"{role} = {name}")
    if not tried:
        return verdict
    note = f"Also tried, without a fit: {', '.join(tried)}."
    return replace(verdict, notes=(note, *verdict.notes))


def _signal(
    steps: LoggedSteps, log: Log, layout: TrlLayout, group_size: int | None
) -> Signal:
    """What the rewards can still teach. Rows of evaluation are left out."""
    rewards = log.table.filter(like="reward ").to_numpy()
    if layout.training is not None:
        rewards = rewards[layout.training]
    has_mask = not {"mask", "accepted", "rejected"}.isdisjoint(log.columns.role)
    names, has_steps = log.columns.rewards, log.has_steps
    return signal_of(steps, rewards, names, group_size, has_mask, has_steps)


def options_of(
    columns: Iterable[str], declared: str, weights: str, group_size: str
) -> dict[str, Any]:
    """The arguments of `check_log` as a person types them: "name = value", several
    settings or numbers between commas, "" for none. Raises GradebookError for what
    cannot be read."""
    try:
        numbers = [number(weight) for weight in weights.split(",")] if weights else None
        if any(abs(weight) >= 1e300 for weight in numbers or ()):
            raise refuse("numbers below 1e300", weights)
    except GradebookError as error:
        raise error.at(key="weights") from None
    return {
        "columns": pairs(columns, "column"),
        "declared": pairs(declared.split(","), "declared"),
        "weights": numbers,
        "group_size": setting_of("group_size", group_size) if group_size else None,
    }


def pairs(parts: Iterable[str], key: str) -> dict[str, str]:
    """The parts, "name = value" each. Raises GradebookError with `key` for another
    one, and for a name that is given two values."""
    named: dict[str, str] = {}
    for part in filter(str.strip, parts):
        name, mark, value = (text.strip() for text in part.partition("="))
        if not name or not mark:
            raise refuse("name = value", part, key)
        if named.setdefault(name, value) != value:
            both = f"{name}={named[name]} and {name}={value}"
            raise refuse(f"one value of {name}", both, key)
    return named


def _settings(run: Recording | None, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded settings, replaced by those that are declared now. A declared
    estimator replaces every setting that it decides."""
    replaced = ("baseline", "scale", "whiten_tokens") if "estimator" in declared else ()
    recorded = run.declared if run else {}
    return {k: v for k, v in recorded.items() if k not in replaced} | {**declared}


def _made(log: Log) -> frozenset[str]:
    """The columns that Gradebook made from empty rewards. Their meaning is known."""
    return frozenset({"scored"}) - log.columns.role.keys()


def _read(log: Log, declared: Mapping[str, object]) -> Verdict:
    """The verdict as it is after reading, before anything is judged."""
    why = "broken steps" if log.broken_cells else "no steps"
    if "advantage" not in log.columns.role:
        why = "no advantages"
    statement = curves_said(log.curves) if log.curves else REASONS[why]
    if why == "no advantages" and not log.curves:
        statement = _with_writer(statement, log)
    run = log.recording
    missing, problems = (run.missing(), run.problems) if run else ({}, ())
    lacking = [
        f"step {step} is not judged: it lacks rows of rank {', '.join(map(str, ranks))}"
        for step, ranks in missing.items()
    ]
    cells = [" ".join(str(error).split()) for error in log.broken]
    return Verdict(
        _with_empty(statement, log),
        "cannot tell",
        log,
        steps_read=log.broken_steps + len(missing),
        columns={**log.columns.role, "reward": " + ".join(log.columns.rewards)},
        files=tuple(Path(s.name).name for s in log.sources),
        declared=declared,
        broken=(*lacking, *problems, *cells)[:NAMED],
    )


def _with_writer(statement: Statement, log: Log) -> Statement:
    """The statement that there are no advantages. If the trainer's format has none, to
    log them beside the rewards is no setting: they must be recorded."""
    written = log.columns.format
    if written is None or not written.roles or "advantage" in written.roles:
        return statement
    files = f"{written.trainer}'s files ({written.what}) hold none."
    record = "Record rewards and advantages in the trainer, for example with"
    return replace(statement, rest=(files, f"{record} gradebook.Recorder."))


def _with_empty(statement: Statement, log: Log) -> Statement:
    """The statement, with how many rows have no reward or no advantage, if any."""
    sentences = list(statement.rest)
    if log.unscored:
        rows = counted(log.unscored, "row has", "rows have")
        sentences.append(f"{rows} no reward and {_is(log.unscored)} not scored.")
    if log.emptied:
        sentences.append(
            "A missing reward empties the advantages of its whole prompt here:"
            f" {counted(log.emptied, 'row')} of such prompts {_is(log.emptied)} not"
            " judged."
        )
    if log.empty_advantages:
        rows = counted(log.empty_advantages, "row has", "rows have")
        sentences.append(
            f"{rows} an empty advantage: no step or prompt with one is judged."
        )
    return replace(statement, rest=tuple(sentences))


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _with_losses(statement: Statement, read: Verdict) -> Statement:
    """The statement, with the findings of a recording's losses."""
    run = read.log.recording
    losses = () if run is None else of_loss.findings(run, read.declared)
    return replace(statement, rest=(*statement.rest, *losses))


def _verdict(read: Verdict, layout: TrlLayout, j: Judgement) -> Verdict:
    """The verdict, with the judgement on it."""
    log, ruler = read.log, j.evidence.ruler
    steps = ruler.steps
    has_advantages = "advantage" in steps.has
    is_assumed = layout.why == ASSUMED
    if is_assumed:
        j = _with_assumed_weights(j)
    frame = j.frame
    first = frame[frame["verdict"].isin(OFF)][:1]
    fitting = frame[frame["verdict"] == j.verdict] if j.estimator else frame[:0]
    unchecked, unchecked_bugs = _unchecked(steps.has)
    order = _order(j) if has_advantages and not is_assumed else None
    return replace(
        read,
        statement=_statement(read, j, order),
        verdict=j.verdict,
        judgement=j,
        bug=j.bug,
        asks=tuple(s.bug for s in j.asks),
        estimator=j.computation.estimator if j.computation else "",
        convention=j.computation.details if j.computation else "",
        residual=float(fitting["residual"].max()),
        correct_residual=float(frame["correct_residual"].max()),
        step=next(iter(first["step"]), None),
        row=next(map(int, first["row"]), None),
        flips=int(frame["flips"].sum()),
        steps_fitted=len(fitting),
        steps_judged=len(frame),
        steps_read=read.steps_read + len(frame),
        ties=ties_of(j),
        notes=(*_notes(log, ruler.advantage), *layout.notes, *unchecked_bugs),
        near=_near(j),
        left_over=next((each.kind for each in j.left_over), ""),
        order=order,
        unchecked=unchecked,
        weights=layout.weights,
        frame=frame,
        what_if=pd.DataFrame() if has_advantages else what_if(steps, j.declaration),
    )


def _with_assumed_weights(j: Judgement) -> Judgement:
    """The judgement if the log does not determine the reward weights. Findings that
    other weights would change are left out."""
    if j.verdict not in BY_WEIGHTS and j.why != "rounding":
        return j
    frame = _without_weights(j.frame)
    return replace(j, verdict="cannot tell", why="weights", frame=frame)


def _statement(read: Verdict, j: Judgement, order: Order | None) -> Statement:
    """The judgement in sentences, with the order of rewards, the loss and the empty
    cells."""
    statement = statement_of(j, read.declared, read.columns)
    if j.why == "no advantages":
        statement = _with_writer(statement, read.log)
    statement = _with_losses(statement, read)
    if order:
        by_place = j.suspect is not None and j.suspect.cuts_by_place
        statement = _with_order(statement, order, bool(j.left_over) or by_place)
    if j.verdict == "none fits" and not read.log.has_steps:
        statement = replace(statement, rest=(*statement.rest, NO_STEP))
    return _with_empty(statement, read.log)


NO_STEP = (
    "The log does not say which step a row belongs to, so all rows were taken as one"
    " step. Some trainers compare the rows of a step: log its number."
)


def _near(j: Judgement) -> str:
    """What is left over if no computation fits, or the closest one, in sentences. If
    the log does not determine the weights, what shows a KL in the reward with weights
    of 1: a KL hides the weights, and others leave differences from the first step on.
    """
    if j.why == "weights":
        kl = [each for each in j.evidence.left_over if each.kind == KL]
        return " ".join(f"If all weights are 1: {left_over_words(each)}" for each in kl)
    return " ".join(map(left_over_words, j.left_over)) or near_words(j.near)


def _order(j: Judgement) -> Order:
    """How rewards and advantages are ordered in the groups of the computation."""
    view = j.computation.view if j.computation else View()
    return order_of(j.evidence.ruler, view)


def _with_order(statement: Statement, order: Order, explained: bool) -> Statement:
    """The statement, with the order of rewards. A broken order is not said if what is
    left over, or groups that are cut by place, explain it."""
    words = order_words(order) if order.is_turned or not explained else ""
    return replace(statement, rest=tuple(filter(None, (words, *statement.rest))))


def check(
    frame: pd.DataFrame | Recording,
    *,
    columns: Mapping[str, str] | None = None,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
    places: int | None = None,
    declared: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """What each step's advantages are: one row per step.

    `frame` has whole steps, one row per rollout, in the log's order. Names
    of columns are guessed; `columns` says otherwise ({"reward": "score"}).
    It may also be a recording, or a part of one (`Recording.split`), which
    says by itself what it holds and what was declared. `weights` are the reward
    functions', `group_size` the rows per prompt, `places` the decimals that
    advantages were rounded to, `declared` settings that the trainer was given
    ({"scale": "group"}).

    Columns of the answer: step; verdict (correct, other, suspect, asks,
    cannot tell, none fits); bug, the suspect's name or ""; ties, the names
    that fit equally well; asks, the bugs that it would be under a condition;
    estimator; residual, the largest distance of a row from that computation;
    correct_residual, the same for the correct one; row, the worst one,
    counted from 0 in its step; rows and groups, how many the step has; flips,
    rows of another sign than the correct one; groups_affected. A step's
    verdict depends on its own rows. A step that is there twice, since the run was
    resumed, has two rows: "4" and "4 (again)".

    Raises GradebookError naming column and row of what cannot be read.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"prompt": [0, 0], "reward": [1.0, 4.0],
    ...                       "advantage": [-1.5, 1.5]})
    >>> check(frame)[["verdict", "estimator"]].values.tolist()
    [['correct', 'dr_grpo']]
    """
    if isinstance(frame, pd.DataFrame):
        log = read_frame(frame, columns)
    else:
        declared = _settings(frame, declared or {})
        log = read_recording(frame, columns)
    declaration = declaration_of(declared, group_size, log.columns.trusted)
    if not len(log.table):
        return no_steps()
    layout = layout_of(log.table, log.columns, weights, group_size)
    steps = logged(log.table, log.columns, layout)
    answer = each_step(ruler_of(steps, log.types, places), declaration)
    return _without_weights(answer) if layout.why == ASSUMED else answer


def _without_weights(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without verdicts that other reward weights would change."""
    verdict = frame["verdict"].replace([*BY_WEIGHTS], "cannot tell")
    return frame.assign(verdict=verdict)


def _notes(log: Log, rounding: Rounding) -> list[str]:
    """Notes on steps that were not judged or were rearranged, and on rounding."""
    steps = counted(log.broken_steps, "step is", "steps are")
    if log.without:
        steps = f"all {counted(log.without, 'row')} of these prompts are"
    notes = {
        f"{log.broken_files} of {counted(len(log.sources), 'file')} could not be read"
        " to the end; the others are checked.": log.broken_files,
        "Some rows have several advantages, one per token. The check uses their mean"
        " over unmasked tokens.": log.recording
        and log.recording.parts["by_token"].any(),
        "The rows of a step are not next to each other in this log. They were grouped"
        " by step, in their logged order.": log.gathered and not log.repeated,
        f"{counted(log.repeated, 'step occurs', 'steps occur')} more than once, as"
        " after a resumed run. Each occurrence is judged separately.": log.repeated,
        f"{counted(log.broken_cells, 'broken cell was', 'broken cells were')} left out;"
        f" {steps} not judged for it.": log.broken_cells,
        "Each line of this log is a group. If a line without advantages has equal"
        " rewards only, its advantages were taken as 0.": log.columns.format
        is OF_GROUPS
        and "advantage" in log.columns.role,
        f"Advantages are {rounding.words}; if nothing fits exactly, this rounding is"
        " allowed for.": rounding,
    }
    by_row = [
        f"`{name}` has one value a row. A mask has one a token, so it is not used."
        " If it says which rows the loss keeps, name it as the column `accepted`."
        for name in log.columns.masks_by_row
    ]
    return [*by_row, *(note for note in notes if notes[note])]


def _unchecked(has: frozenset[str]) -> tuple[str, list[str]]:
    """One line that names the columns that would let more be checked; the list."""
    bugs = [*map(bug, BUGS)]
    silent = [b.title for b in bugs if not b.in_advantages]
    unchecked = [b for b in bugs if b.in_advantages and not can_show(b, has)]
    lines = [
        f"{b.title} was checked with {b.without}. It shows in full with {b.tells}."
        if b.without
        else f"Not checked: {b.title}. That needs {b.tells}."
        for b in unchecked
    ]
    if silent:
        lines.append(
            f"Not checked: {', '.join(silent)}. They leave no trace in a log's"
            " advantages. A recording with logp, ref_logp, loss and policy_loss shows a"
            " KL that is subtracted; with grad_norm too, a KL without a gradient; with"
            " logp, old_logp and mini_batch, an anchor that moves. The check looks for"
            " none of the others; the page of each says what would tell it."
        )
    telling = chain.from_iterable(map(telling_columns, unchecked))
    names = ", ".join(dict.fromkeys(name for name in telling if name not in has))
    line = f"More could be checked if the log had: {names}." if names else ""
    return line, lines
