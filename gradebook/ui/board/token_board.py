"""The board of a bug that acts on tokens: its lines, what is dragged, the push on each
token and what the engines compare, as plain data without Streamlit. It gives what
`view` gives for rows, line by line.

lines      [row, first token, last token, group, head] of each line. Neighbours that are
           equal in every column and in both pushes are one line, in a long board.
           Lines of one group are joined by a bracket; the head shows the row's cells
token      the selected token
tokenNames  what each line's token is called, "2" or "2 to 41"
masked     "1" if a line's token is masked: a tool's text or padding
advantages  each row's advantage, if its tokens are trained with it
windows    by engine, on each line [low, anchor, high, edge]: the numbers between which
           a token is not clipped; edge is 1 or -1 for the end that can stop it
ratios     on each line the probability against the old one
ticks      [title, numbers on each line]: the number to which the dragged one is
           compared
turns      by engine, on each line the dragged number at which the push is 0
causeAxis  the axis of the brackets, where they are no numbers of the dragged kind
lanes      by engine, the lines that share a denominator: [first, last, text]
rules      [line, text]: where a step or a pass begins
legend     [sign, words] of what only this board draws
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, groupby, pairwise
from typing import Any, NamedTuple

from torch import Tensor

from gradebook.analysis.comparison import Comparison, push
from gradebook.cases.scenario import bug
from gradebook.cases.state import State
from gradebook.core.batch import Batch
from gradebook.core.columns import COLUMNS, number, parts
from gradebook.core.formatting import flips, pair, same, settled, short, signed
from gradebook.engine.pipeline import CHAPTERS, Trace
from gradebook.output.axes import of_inputs, result_axis
from gradebook.ui.parts.drafts import PageDraft

MANY = 12
"""Lines beyond which equal neighbours are one line."""
LEAST = 3
"""Tokens of such a line at least."""
NO_NUMBER = "–"
PUSH = (
    "How hard a step pushes the token: minus the gradient, times the unmasked tokens of"
    " its step, the same number for both engines. On policy, under a mean over tokens,"
    " it is the advantage."
)


class BoardLine(NamedTuple):
    row: int
    first: int
    last: int
    group: int
    head: bool


class TokenNumbers(NamedTuple):
    """The table's tokens as numbers, row by row."""

    mask: list[list[bool]]
    lists: dict[str, list[list[float]]]

    @classmethod
    def of(cls, state: State) -> "TokenNumbers":
        table = state.table
        lists = {
            name: [[number(part) for part in parts(cell)] for cell in table[name]]
            for name in table.columns
            if COLUMNS[name].kind == "list"
        }
        if table.width:
            mask = [list(row) for row in table["mask"]]
        else:
            width = len(next(iter(lists.values()), [[0.0]])[0])
            mask = [[True] * width for _ in range(len(table))]
        return cls(mask, lists)


def board(
    draft: PageDraft, covered: bool, places: Sequence[float] = ()
) -> dict[str, Any]:
    """The board's data by lines."""
    state, both, came = draft.state, draft.comparison, draft.before
    if covered:  # the correct engine beside itself
        both, came = (replace(c, faulty=c.correct) for c in (both, came))
    typed = TokenNumbers.of(state)
    pushes = _pushes(both, typed)
    lines = lines_of(draft, typed, pushes)
    before = _pushes(came, typed) if draft.moved else None
    panel = _panel(lines, typed, pushes, before, 1 if covered else 2, places, both)
    traces = [both.correct] if covered else [both.correct, both.faulty]
    drawn = _causes(draft, lines, typed, traces, both.batch) if pushes else {}
    if drawn.get("causes") and state.scenario.drag[0] not in IN_REWARDS:
        drawn["causeAxis"] = _return_axis(drawn["causes"], places)
    data = {
        "lines": [list(line) for line in lines],
        "token": state.token,
        "tokenNames": [_name(line) for line in lines],
        "masked": "".join("01"[not typed.mask[n.row][n.first]] for n in lines),
        "panels": [panel],
        "handles": _handles(draft, lines, typed, drawn),
        "byPosition": draft.scenario.lines == "position",
        "causes": [],
        "summary": summary(lines, panel),
        **drawn,
    }
    if state.settings.credit == "row" and both.batch.rows == state.rows:
        texts = [signed(settled(float(x))) for x in both.correct.advantage]
        data["advantages"] = texts
    return data


def _pushes(both: Comparison, typed: TokenNumbers) -> tuple[Tensor, Tensor] | None:
    """As `sides`; None if these are the results of other rows, or of other tokens."""
    if both.batch.rows != len(typed.mask) or not _as_wide(both, typed):
        return None
    return sides(both)


def sides(both: Comparison) -> tuple[Tensor, Tensor]:
    """Both engines' push on each token; without logp the tokens' advantages.
    float [R, T]."""
    traces = both.correct, both.faulty
    if both.batch.logp is None:
        return both.correct.token_advantage, both.faulty.token_advantage
    correct, faulty = (push(both.batch, trace) for trace in traces)
    assert correct is not None and faulty is not None
    return correct, faulty


def _as_wide(both: Comparison, typed: TokenNumbers) -> bool:
    return both.batch.mask.shape[1] == len(typed.mask[0])


# Lines


def lines_of(
    draft: PageDraft, typed: TokenNumbers, pushes: tuple[Tensor, Tensor] | None
) -> list[BoardLine]:
    """The board's lines, in the order of the case."""
    shown = [_shown(draft.state, typed, row) for row in range(draft.state.rows)]
    if draft.scenario.lines == "position":
        order = sorted(
            (token, row) for row, tokens in enumerate(shown) for token in tokens
        )
        rows_of = [[row for _, row in group] for _, group in groupby(order, _first)]
        return [
            BoardLine(row, token, token, token, True)
            for token, rows in enumerate(rows_of)
            for row in rows
        ]
    runs = [[(token, token) for token in tokens] for tokens in shown]
    if sum(map(len, runs)) > MANY:
        runs = [
            _folded(draft, typed, pushes, row, tokens)
            for row, tokens in enumerate(shown)
        ]
    return [
        BoardLine(row, first, last, row, not place)
        for row, of_row in enumerate(runs)
        for place, (first, last) in enumerate(of_row)
    ]


def _first(pair: tuple[int, int]) -> int:
    return pair[0]


def _shown(state: State, typed: TokenNumbers, row: int) -> range:
    """The row's tokens that have a line: all up to the end of the response, and the
    padding behind it if a critic's values are dragged."""
    width = len(typed.mask[row])
    if "value" in state.scenario.drag:
        return range(width)
    end = max((t + 1 for t, on in enumerate(typed.mask[row]) if on), default=1)
    if "extent" in state.table.columns:
        end = max(end, int(number(state.table["extent"][row])))
    return range(min(end, width))


def _folded(
    draft: PageDraft,
    typed: TokenNumbers,
    pushes: tuple[Tensor, Tensor] | None,
    row: int,
    tokens: range,
) -> list[tuple[int, int]]:
    """The row's tokens as runs of equal ones, from first to last. A run whose token was
    selected, or is in question, is open."""
    open_ones = {token for r, token in draft.page.visited if r == row}
    if row == draft.scenario.focus:
        open_ones.add(draft.scenario.token)

    def looks(token: int) -> tuple[Any, ...]:
        numbers = [column[row][token] for column in typed.lists.values()]
        results = [round(float(side[row, token]), 9) for side in pushes or ()]
        return typed.mask[row][token], *numbers, *results

    runs: list[tuple[int, int]] = []
    for _, group in groupby(tokens, looks):
        run = list(group)
        if len(run) >= LEAST and not open_ones.intersection(run):
            runs.append((run[0], run[-1]))
        else:
            runs += [(token, token) for token in run]
    return runs


def _name(line: BoardLine) -> str:
    if line.first == line.last:
        return str(line.first)
    return f"{line.first} to {line.last}"


def line_of(lines: Iterable[BoardLine], row: int, token: int) -> int | None:
    """The number of the line that shows the token."""
    for place, line in enumerate(lines):
        if line.row == row and line.first <= token <= line.last:
            return place
    return None


def handle_of(draft: PageDraft, row: int) -> int | None:
    """The line of the row whose handle a challenge is about: that of the token in
    question, or the one that has the row's reward."""
    typed, token = TokenNumbers.of(draft.state), draft.scenario.token
    lines = lines_of(draft, typed, None)
    if draft.scenario.drag[0] != "reward":
        return line_of(lines, row, token)
    rewards = _rewards(draft.state, lines, typed)
    places = (n for n, x in enumerate(rewards) if lines[n].row == row and x == x)
    return next(places, None)


# Results


def _panel(
    lines: Sequence[BoardLine],
    typed: TokenNumbers,
    pushes: tuple[Tensor, Tensor] | None,
    before: tuple[Tensor, Tensor] | None,
    count: int,
    places: Sequence[float],
    both: Comparison,
) -> dict[str, Any]:
    """The axis of the results, with those of the first `count` engines."""
    nothing = [math.nan] * len(lines)
    values = [nothing, nothing]
    if pushes:
        values = [_results(side, lines, typed) for side in pushes]
    came = [_results(side, lines, typed) for side in before or ()][:count]
    correct, faulty = values
    pairs = list(zip(correct, faulty))
    title, about = ("advantage", "") if both.batch.logp is None else ("push", PUSH)
    panel: dict[str, Any] = {
        "title": title,
        "help": about,
        "ends": ["less likely", "more likely"],
        "briefly": ["less", "more"],
        "engines": [_numbers(side) for side in values[:count]],
        "text": _texts(pairs, count),
        "differ": [n for n, two in enumerate(pairs) if not same(*two)],
        "flips": [n for n, two in enumerate(pairs) if flips(*two)],
        # Before the answer the axis is that of the batch as it came.
        **result_axis((came or values)[0], places, chain(*values[:count], *came)),
    }
    if came:
        panel["ghosts"] = [_numbers(side) for side in came]
    return panel


def _results(
    side: Tensor, lines: Sequence[BoardLine], typed: TokenNumbers
) -> list[float]:
    """One engine's number on each line, NaN on a masked one."""
    return [
        settled(float(side[line.row, line.first]))
        if typed.mask[line.row][line.first]
        else math.nan
        for line in lines
    ]


def _texts(pairs: Sequence[tuple[float, float]], count: int) -> list[list[str]]:
    """The first `count` engines' numbers on each line as text, by engine."""
    texts = [
        pair(*two)[:count] if all(map(math.isfinite, two)) else (NO_NUMBER,) * count
        for two in pairs
    ]
    return [list(side) for side in zip(*texts)]


def _numbers(values: Iterable[float]) -> list[float | None]:
    """Numbers for the browser, with seven significant digits."""
    return [float(f"{x:.7g}") if math.isfinite(x) else None for x in values]


def summary(lines: Sequence[BoardLine], panel: dict[str, Any]) -> str:
    """How many tokens differ, in a sentence."""
    tokens = sum(line.last - line.first + 1 for line in lines)
    apart = sum(lines[n].last - lines[n].first + 1 for n in panel["differ"])
    if not apart:
        return f"Both engines agree on all {tokens} tokens."
    sentence = f"{apart} of {tokens} tokens differ in {panel['title']}"
    if panel["flips"]:
        where = [lines[n] for n in panel["flips"][:3]]
        sentence += "; the sign flips on " + ", ".join(
            f"token {_name(line)} of row {line.row}" for line in where
        )
        more = len(panel["flips"]) - len(where)
        sentence += f" and {more} more" if more else ""
    return sentence + "."


# What is dragged


def _handles(
    draft: PageDraft,
    lines: Sequence[BoardLine],
    typed: TokenNumbers,
    drawn: dict[str, Any],
) -> dict[str, Any]:
    """The handles that can be dragged: their name, their numbers now and in the case as
    it came, and their axis."""
    column = draft.scenario.drag[0]
    title, has_numbers = COLUMNS[column].title, True
    if "lanes" in drawn:
        title, has_numbers = "denominator", False
    elif column == "reward" and draft.scenario.lines == "position":
        title, has_numbers = "advantage used", False
    values = [math.nan] * len(lines)
    if has_numbers:
        values = _typed_numbers(draft.state, typed, lines, column)
    came = _numbers_that_came(draft, lines, typed, column)
    dragged = [x for x in values if math.isfinite(x)]
    axis = of_inputs(dragged, _numbers_beside(came, drawn))
    return {
        "column": column,
        "columns": list(draft.scenario.drag),
        "title": title,
        "values": _numbers(values),
        "before": _numbers(came),
        "axis": {"low": axis.low, "high": axis.high, "unit": axis.unit},
    }


def _typed_numbers(
    state: State, typed: TokenNumbers, lines: Sequence[BoardLine], column: str
) -> list[float]:
    """The column's number on each line, NaN on a line without one."""
    if column == "reward":
        return _rewards(state, lines, typed)
    return [typed.lists[column][line.row][line.first] for line in lines]


def _numbers_that_came(
    draft: PageDraft, lines: Sequence[BoardLine], typed: TokenNumbers, column: str
) -> list[float]:
    """The column's number on each line in the case as it came; [] if nothing moved, or
    the case has other rows, tokens or columns."""
    if not draft.moved or draft.base.rows != draft.state.rows:
        return []
    base = TokenNumbers.of(draft.base)
    has_column = column == "reward" or column in base.lists
    if not has_column or len(base.mask[0]) != len(typed.mask[0]):
        return []
    return _typed_numbers(draft.base, base, lines, column)


def _numbers_beside(came: Sequence[float], drawn: dict[str, Any]) -> list[float]:
    """The numbers that the axis of the handles holds beside the dragged ones. Of the
    engines', they are the correct one's alone: the axis stays when the answer comes."""
    numbers: list[float | None] = [*came]
    if "causeAxis" not in drawn:
        for cause in drawn.get("causes", ())[:1]:
            numbers += cause["at"]
    for windows in drawn.get("windows", ())[:1]:
        numbers += (x for low_to_high in windows for x in low_to_high[:3])
    for _, at_lines in drawn.get("ticks", ()):
        numbers += at_lines
    return [x for x in numbers if x is not None and math.isfinite(x)]


IN_REWARDS = ("reward", "value")
"""Dragged columns in units of the reward, as returns are."""


def _return_axis(
    causes: Sequence[dict[str, Any]], places: Sequence[float]
) -> dict[str, Any]:
    """The axis of the returns. It has the room of an axis of results: it holds the
    choices of the question, and seldom widens with the answer."""
    correct = [x for x in causes[0]["at"] if x is not None]
    axis = result_axis(correct, places, [x for cause in causes for x in cause["at"]])
    reach, unit = axis["reach"][1] or 0.0, axis["unit"][1]
    return {"title": "return", "low": -reach, "high": reach, "unit": unit}


def _rewards(
    state: State, lines: Sequence[BoardLine], typed: TokenNumbers
) -> list[float]:
    """The row's reward at the line of its last unmasked token, else NaN."""
    rewards = [math.nan] * len(lines)
    for place, line in enumerate(lines):
        later = [n for n in lines[place + 1 :] if n.row == line.row]
        if typed.mask[line.row][line.first] and not any(
            typed.mask[n.row][n.first] for n in later
        ):
            rewards[place] = number(state.table["reward"][line.row])
    return rewards


# What the engines compare


def _causes(
    draft: PageDraft,
    lines: Sequence[BoardLine],
    typed: TokenNumbers,
    traces: Sequence[Trace],
    batch: Batch,
) -> dict[str, Any]:
    """The drawing on the left side, chosen by the faulty stage and the columns that the
    batch has."""
    stages = {bug(name).stage for name in draft.state.bugs}
    rules = _rules(lines, batch, "weight" in stages)
    data: dict[str, Any] = {"rules": rules} if rules else {}
    if "weight" in stages and traces[0].weight is not None:
        data["lanes"] = [_lanes(lines, typed, trace, batch) for trace in traces]
        data["legend"] = _legend(traces, "tokens that share a denominator")
        return data
    if draft.scenario.lines == "position":
        causes = [_used(lines, trace) for trace in traces]
        words = "the advantage that a token is trained with"
        return data | _brackets(causes, words)
    if draft.state.settings.credit != "row" or stages & {*CHAPTERS["tokens"]}:
        causes = [_returns(lines, typed, trace) for trace in traces]
        words = "tokens with the same return, at its value"
        return data | _brackets(causes, words)
    return data | _compared(draft, lines, traces, batch)


def _brackets(causes: list[dict[str, Any]], words: str) -> dict[str, Any]:
    """Each engine's brackets, and what they are."""
    return {"causes": causes, "legend": _legend(causes, words)}


def _legend(engines: Sequence[Any], words: str) -> list[list[str]]:
    """What a bracket is; the faulty engine's is dashed."""
    legend = [["bracket", words]]
    return legend + [["dashed", "the same, faulty"]] * (len(engines) > 1)


def _rules(lines: Sequence[BoardLine], batch: Batch, passes: bool) -> list[list[Any]]:
    """Where another step begins, or with `passes` another micro-batch."""
    step, size = batch.step.tolist(), batch.settings.micro_batch
    if len({*step}) > 1:
        of_row, word = step, "step"
    elif passes and size:
        of_row, word = [row // size for row in range(batch.rows)], "pass"
    else:
        return []
    starts = [0, *(n for n, (a, b) in enumerate(pairwise(lines), 1) if a.row != b.row)]
    rules: list[list[Any]] = []
    for place in starts:
        label = f"{word} {of_row[lines[place].row]}"
        if not rules or rules[-1][1] != label:
            rules.append([place, label])
    return rules


def _lanes(
    lines: Sequence[BoardLine], typed: TokenNumbers, trace: Trace, batch: Batch
) -> list[list[Any]]:
    """Runs of lines whose tokens have the same denominator. If exactly one step has as
    many tokens as the denominator counts, a run ends with the step."""
    assert trace.weight is not None
    weights, steps = trace.weight.tolist(), batch.step.tolist()
    counted: dict[int, int] = {}
    for row, mask in enumerate(typed.mask):
        counted[steps[row]] = counted.get(steps[row], 0) + sum(mask)

    def shares(a: BoardLine, b: BoardLine) -> bool:
        equal = bool(same(weights[a.row], weights[b.row]))
        one_step = steps[a.row] == steps[b.row]
        whole = weights[a.row] * counted[steps[a.row]] >= 1 - 1e-6
        return equal and (one_step or not whole)

    runs = [[0, 0]]
    for place, (a, b) in enumerate(pairwise(lines), 1):
        if shares(a, b):
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return [
        [first, last, f"÷ {short(1 / weights[lines[first].row], 4)}"]
        for first, last in runs
        if weights[lines[first].row] > 0
    ]


def _used(lines: Sequence[BoardLine], trace: Trace) -> dict[str, Any]:
    """The advantage that each token is trained with: minus its surrogate, on policy.
    Tokens of one position with the same one share a bracket."""
    at, group, place = [], [], -1
    for n, line in enumerate(lines):
        used = trace.token_advantage if trace.surrogate is None else -trace.surrogate
        at.append(settled(float(used[line.row, line.first])))
        near = n and lines[n - 1].first == line.first
        place += not (near and bool(same(at[-1], at[-2])))
        group.append(place)
    marks = "1" * len(lines)
    return {"group": group, "say": marks, "at": _numbers(at), "counts": marks}


def _returns(
    lines: Sequence[BoardLine], typed: TokenNumbers, trace: Trace
) -> dict[str, Any]:
    """Brackets that join a row's tokens with the same return, at its value. A masked
    token between two of them is inside."""
    group = [-1] * len(lines)
    at: list[float] = [math.nan] * len(lines)
    open_at, here = -1, -1
    for n, line in enumerate(lines):
        if not typed.mask[line.row][line.first]:
            continue
        value = settled(float(trace.token_return[line.row, line.first]))
        joins = (
            open_at >= 0
            and lines[open_at].row == line.row
            and bool(same(value, at[open_at]))
        )
        here += not joins
        for inside in range(open_at if joins else n, n + 1):
            group[inside], at[inside] = here, value
        open_at = n
    counts = "".join("01"[typed.mask[x.row][x.first]] for x in lines)
    return {"group": group, "say": counts, "at": _numbers(at), "counts": counts}


def _compared(
    draft: PageDraft, lines: Sequence[BoardLine], traces: Sequence[Trace], batch: Batch
) -> dict[str, Any]:
    """Windows around the number with which a dragged log-probability is compared, and
    ticks at the other ones."""
    if batch.logp is None:
        return {}
    data = _windows(lines, traces, batch)
    drag, settings = draft.scenario.drag, batch.settings
    ticks = [
        [title, _column(lines, values)]
        for title, values, drawn in (
            ("logp", batch.logp, "logp" not in drag),
            (
                "behaviour logp",
                batch.behaviour_logp,
                settings.off_policy == "truncate" and "behaviour_logp" not in drag,
            ),
            ("ref logp", batch.ref_logp, bool(settings.beta)),
        )
        if drawn and values is not None
    ]
    legend = [*data.pop("legend", []), *(["tick", title] for title, _ in ticks)]
    turns = [_turns(draft, lines, trace, batch) for trace in traces]
    if any(x is not None for side in turns for x in side):
        data["turns"] = turns
        name = draft.scenario.engine_names[-1]
        legend.append(["turn", f"{name} push is 0 here, and reversed to the left"])
    return data | {"ticks": ticks, "legend": legend}


def _turns(
    draft: PageDraft, lines: Sequence[BoardLine], trace: Trace, batch: Batch
) -> list[float | None]:
    """The logp of each line at which its push is 0 because the weight has a slope, too.

    The surrogate is linear in logp, and the weight stays as it is while one handle
    moves logp and behaviour logp. So surrogate x slope of the weight + weight x slope
    of the surrogate is 0 at logp - surrogate / its slope - weight / its slope.
    """
    settings, drag = batch.settings, draft.scenario.drag
    moves_along = drag[0] == "logp" and "behaviour_logp" in drag
    is_linear = settings.surrogate == "reinforce" and settings.ratio == "token"
    if batch.logp is None or settings.beta or not (moves_along and is_linear):
        return [None] * len(lines)
    at = batch.logp
    for part, stage in (
        (trace.surrogate, "surrogate"),
        (trace.off_policy, "off_policy"),
    ):
        slope = trace.slope(stage)
        if part is None or slope is None:
            return [None] * len(lines)
        at = at - part / slope  # infinite without a slope
    return _column(lines, at)


def _column(lines: Sequence[BoardLine], values: Tensor) -> list[float | None]:
    """The numbers of each line's tokens."""
    return _numbers(float(values[line.row, line.first]) for line in lines)


def _windows(
    lines: Sequence[BoardLine], traces: Sequence[Trace], batch: Batch
) -> dict[str, Any]:
    """Between which numbers a token is not clipped, or not rejected."""
    settings = batch.settings
    # cispo clips a weight, which stops no token; the ratio of a sequence moves with
    # all its tokens, so no token has a window of its own.
    can_stop = settings.surrogate == "ppo" and settings.ratio == "token"
    if batch.old_logp is not None and can_stop:
        data: dict[str, Any] = {
            "windows": [_clipping(lines, trace, batch) for trace in traces],
            "legend": [["window", "clip window; the thick edge can stop the token"]],
        }
        if traces[0].log_ratio is not None:
            ratios = _column(lines, traces[0].log_ratio.exp())
            data["ratios"] = [f"× {short(x, 3)}" if x else "" for x in ratios]
        if len(traces) > 1:
            data["legend"].append(["framed", "the window, faulty"])
        return data
    if settings.off_policy == "reject" and batch.behaviour_logp is not None:
        low = math.log(max(settings.off_policy_low, 1e-9))
        around = _column(lines, batch.behaviour_logp)
        edges = _window(around, low, math.log(settings.off_policy_cap))
        words = "not rejected: near the behaviour logp"
        return {"windows": [edges for _ in traces], "legend": [["window", words]]}
    return {}


def _clipping(
    lines: Sequence[BoardLine], trace: Trace, batch: Batch
) -> list[list[float | None]]:
    """Between which log-probabilities each token is not clipped, around what the engine
    compares it with; the edge that can stop a token with this advantage."""
    assert trace.log_ratio is not None and batch.logp is not None
    anchor = batch.logp - trace.log_ratio
    low = math.log(max(1 - batch.settings.clip_low, 1e-9))
    high = math.log(1 + batch.settings.clip_high)
    sign: Callable[[float], int] = lambda x: (x > 0) - (x < 0)  # noqa: E731
    windows = []
    for line in lines:
        at = float(anchor[line.row, line.first])
        edge = sign(settled(float(trace.token_advantage[line.row, line.first])))
        windows.append([*_numbers([at + low, at, at + high]), edge])
    return windows


def _window(
    around: Sequence[float | None], low: float, high: float
) -> list[list[float | None]]:
    return [
        [None if x is None else x + low, x, None if x is None else x + high, 0]
        for x in around
    ]
