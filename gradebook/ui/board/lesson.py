"""The parts around the board of a bug's page: the box with the question and the
verdict, the challenge, and the path through the stages. Pure functions, without
Streamlit; while the question is covered, nothing of the faulty engine is in them.
"""

import math
from itertools import zip_longest
from typing import Any

from gradebook.analysis import challenges
from gradebook.analysis.comparison import Comparison, by_row, push
from gradebook.cases.case import (
    OF_ENGINES,
    OF_TOKENS,
    Agree,
    Bounds,
    Challenge,
    Differ,
)
from gradebook.cases.scenario import Scenario, bug
from gradebook.core.batch import Batch
from gradebook.core.formatting import counted, minus, pair, plain, same, settled, signed
from gradebook.engine.pipeline import CHAPTERS, SLOPES, Trace
from gradebook.output import panels
from gradebook.ui.board import tokens
from gradebook.ui.board.view import browser_numbers, view
from gradebook.ui.parts.drafts import SKIPPED, Draft, Guess, Progress


def lesson(
    draft: Draft[Scenario], progress: Progress, guessed: bool = True
) -> dict[str, Any]:
    """The board and what stands around it. Without `guessed` the reader's own guess is
    left out of the verdict."""
    scenario = draft.scenario
    guess = progress.guesses.get(scenario.name) if guessed else Guess(SKIPPED)
    covered, task = progress.covered(scenario.name), challenge(draft, progress)
    kind, places = scenario.telltale.kind, scenario.prediction.places
    shown = view(draft, kind=kind, covered=covered, places=places, lesson=True)
    return shown | {
        "box": box(draft, None if covered else guess),
        "challenge": {"count": task["count"]} if covered and task else task,
        "path": path(draft, covered),
    }


def box(draft: Draft[Scenario], guess: Guess | None) -> dict[str, Any]:
    """The question; with a guess, the verdict on it."""
    scenario = draft.scenario
    asked, places = scenario.prediction, scenario.prediction.places
    choices = []
    for text, place, region in zip_longest(asked.choices, places, asked.regions):
        reach = region and browser_numbers(region)
        choices.append({"text": minus(text), "place": place, "region": reach})
    question = {
        "mechanism": minus(scenario.mechanism),
        "question": minus(asked.question),
        "row": scenario.focus,
        "token": None if scenario.lines == "row" else scenario.token,
    }
    if guess is None:
        return question | {"choices": choices}
    choice, answer = guess.choice, f"The answer: {asked.choices[asked.answer]}."
    sentence = answer
    if choice != SKIPPED:
        sentence = asked.said[choice]
        if choice != asked.answer and not places:  # the numbers do not show it
            sentence += f" {answer}"
    values = asked_about(draft)
    return question | {
        "choices": choices,
        "guess": None if choice == SKIPPED else choice,
        "place": guess.place,
        "verdict": {
            "values": browser_numbers(map(settled, values)),
            "text": list(map(minus, pair(*values))),
            "right": choice == asked.answer,
            "said": minus(sentence),
            "why": minus(asked.why),
            "rule": minus(scenario.rule),
        },
    }


def asked_about(draft: Draft[Scenario]) -> tuple[float, float]:
    """Both engines' result that the question is about, on the case as it came."""
    scenario, both = draft.scenario, draft.original
    if scenario.lines != "row":
        correct, faulty = tokens.sides(both)
        place = scenario.focus, scenario.token
        return float(correct[place]), float(faulty[place])
    panel = panels.telling(both, scenario.telltale.kind)
    return float(panel.correct[scenario.focus]), float(panel.faulty[scenario.focus])


def challenge(draft: Draft[Scenario], progress: Progress) -> dict[str, Any] | None:
    """The challenge that is shown, judged on the batch as it is."""
    name, tasks = draft.scenario.name, draft.scenario.challenges
    if not tasks:
        return None
    number, task = draft.page.challenge, tasks[draft.page.challenge]
    missing, shown = _missing(draft), progress.shown.get(name, set())
    made = challenges.changes(draft.origin, draft.state)
    beyond = bool(task.edits and challenges.overstepped(task.edits, made))
    live = (_live(draft, task), "other edits too" * beyond)
    return {
        "at": number,
        "count": len(tasks),
        "goal": minus(task.goal),
        "allowed": challenges.allowed(task.edits) if task.edits else "",
        "hint": minus(task.hint),
        "insight": minus(task.insight),
        "solved": not missing,
        "shown": number in shown,
        "missing": minus(missing),
        "live": ", ".join(filter(None, live)),
        "row": _slides(draft, task),
    }


def note_solved(draft: Draft[Scenario], progress: Progress) -> None:
    """Notes the challenge that is shown, if the batch solves it and its solution was
    not shown."""
    name, number = draft.scenario.name, draft.page.challenge
    if progress.covered(name) or not draft.scenario.challenges:
        return
    if number not in progress.shown.get(name, set()) and not _missing(draft):
        progress.solved.setdefault(name, set()).add(number)


def _missing(draft: Draft[Scenario]) -> str:
    """What the batch misses to solve the challenge that is shown; '' if it does."""
    task = draft.scenario.challenges[draft.page.challenge]
    both = None if draft.fault else draft.comparison
    return challenges.missing(task, draft.state, both)


def _slides(draft: Draft[Scenario], task: Challenge) -> int | None:
    """The line whose handle is all that the challenge lets the reader move."""
    scenario, edits = draft.scenario, task.edits
    if edits is None or len(edits.rows) != 1 or edits.columns != scenario.drag[:1]:
        return None
    if scenario.lines == "row":
        return edits.rows[0]
    return tokens.handle_of(draft, edits.rows[0])


ADVANTAGES = (*OF_ENGINES, "correct shift", "faulty shift")
"""Values of a condition's `of` that are read off an engine's advantage."""


def _live(draft: Draft, task: Challenge) -> str:
    """The number that decides the challenge, a faulty one first, or ""."""
    both = draft.comparison
    conditions = sorted(task.solved, key=lambda c: "faulty" not in getattr(c, "of", ""))
    for condition in conditions:
        if isinstance(condition, (Agree, Differ)) and draft.scenario.lines != "row":
            correct, faulty = tokens.sides(both)
            differ = int((~same(correct, faulty) & both.batch.mask).sum())
            return counted(differ, "token differs", "tokens differ")
        if isinstance(condition, Bounds) and condition.of in OF_TOKENS:
            return _live_push(draft, condition)
        if isinstance(condition, (Agree, Differ)):
            count = int((both.differs("advantage") | both.differs("gradient")).sum())
            return counted(count, "row differs", "rows differ")
        if isinstance(condition, Bounds) and condition.of in ADVANTAGES:
            rows = condition.rows
            row = rows[0] if isinstance(rows, tuple) else draft.scenario.focus
            if row >= both.batch.rows:
                return f"no row {row}"
            correct, faulty = (t.advantage[row] for t in (both.correct, both.faulty))
            texts = pair(float(correct), float(faulty))
            return f"row {row}: {texts[condition.of.startswith('faulty')]}"
    return ""


def _live_push(draft: Draft[Scenario], condition: Bounds) -> str:
    """The push that decides a challenge, with its place."""
    rows = condition.rows
    row = rows[0] if isinstance(rows, tuple) else draft.scenario.focus
    correct, faulty = tokens.sides(draft.comparison)
    if row >= len(correct) or condition.token >= correct.shape[1]:
        return f"no token {condition.token} of row {row}"
    place = row, condition.token
    texts = pair(float(correct[place]), float(faulty[place]))
    return (
        f"row {row}, token {condition.token}: "
        f"{texts[condition.of.startswith('faulty')]}"
    )


TITLES = {
    "rows": "Reward to advantage, by row",
    "tokens": "Advantage, by token",
    "loss": "Loss, by token",
}
"""What the chapters of the path are called."""
RESULTS = {"rows": "advantage"}
"""The stage whose number represents a chapter, if it is not the last."""


def path(draft: Draft, covered: bool) -> dict[str, Any]:
    """The selected row's result at each stage, or the selected token's, chapter by
    chapter, and where the engines part. The chapter of the bug's stage is open; the
    others are one mark, if lines are tokens."""
    both, row = draft.comparison, draft.shown_row
    pair_of = both.correct, both.correct if covered else both.faulty
    token = None
    if draft.scenario.lines != "row":
        token = min(draft.state.token, both.batch.mask.shape[1] - 1)
    stages_of_bugs = {bug(name).stage for name in draft.state.bugs}
    sides = 1 if covered else 2
    chapters, parts = [], None
    for name, names in _chapters(both, token).items():
        stages = []
        for stage in names:
            shown, differs = _stage(both.batch, pair_of, stage, row, token, sides)
            stages.append(shown)
            if parts is None and differs:
                parts = stage
        opened = token is None or bool(stages_of_bugs.intersection(names))
        result = names.index(RESULTS.get(name, names[-1]))
        chapters.append(
            {
                "title": TITLES[name],
                "open": opened,
                "stages": stages,
                "result": result,
            }
        )
    return {
        "row": row,
        "token": token,
        "chapters": chapters,
        "parts": parts,
        "open": draft.page.stage,
    }


def _chapters(both: Comparison, token: int | None) -> dict[str, tuple[str, ...]]:
    """The stages to show: for rows those that ran, as one chapter; for tokens all
    three chapters, of which the loss ends with the push."""
    if token is None:
        return {"rows": both.stages}
    chapters = {"rows": CHAPTERS["rows"], "tokens": CHAPTERS["tokens"]}
    if both.correct.loss is not None:
        ran = [s for s in CHAPTERS["loss"] if getattr(both.correct, s) is not None]
        chapters["loss"] = (*ran, PUSH)
    return chapters


PUSH = "push"
"""The name of the path's last step, after the stages of the loss: their result."""


def _stage(
    batch: Batch,
    traces: tuple[Trace, Trace],
    stage: str,
    row: int,
    token: int | None,
    sides: int,
) -> tuple[dict[str, Any], bool]:
    """A stage of so many engines: its name, its results as text, and its slopes over
    the token's logp where there are some; and whether the two engines differ in it."""
    if stage == "group":
        texts = _group(traces[0], row), _group(traces[1], row)
    else:
        correct, faulty = (_result(batch, t, stage, row, token) for t in traces)
        texts = panels.written(correct, faulty, write=WRITES.get(stage, plain))
        if stage == "weight":
            texts = _share(correct, faulty)
    slopes = _slopes(batch, traces, stage, row, token)
    shown: dict[str, Any] = {"name": stage, "texts": texts[:sides]}
    if any(slopes):
        shown["slopes"] = slopes[:sides]
    return shown, texts[0] != texts[1] or slopes[0] != slopes[1]


WRITES = dict.fromkeys(
    ("standardized", "advantage", *CHAPTERS["tokens"], "log_ratio", "surrogate", PUSH),
    signed,
)


def _result(
    batch: Batch, trace: Trace, stage: str, row: int, token: int | None
) -> float | int | bool:
    if stage == PUSH:
        pushes = push(batch, trace)
        assert pushes is not None and token is not None
        return settled(float(pushes[row, token]))
    value = getattr(trace, stage)
    if token is None or value.dim() == 1:
        return by_row(batch, trace, stage)[row].item()
    return value[row, token].item()


def _share(correct: float, faulty: float) -> tuple[str, str]:
    """Weights as 1 / 6, or with the digits that tell them apart."""
    shares = [1 / x if x else math.inf for x in (correct, faulty)]
    if all(math.isfinite(s) and abs(s - round(s)) < 1e-6 * s for s in shares):
        first, second = (f"1 / {round(share)}" for share in shares)
        return first, second
    return pair(correct, faulty, 4, plain)


def _slopes(
    batch: Batch, traces: tuple[Trace, Trace], stage: str, row: int, token: int | None
) -> tuple[str, str]:
    """How the stage's number changes with the token's logp, as text; "" for both if
    neither changes. Not where a row has one ratio: that slope is not one token's
    own."""
    of_row = batch.settings.ratio == "sequence"
    if token is None or stage not in SLOPES or of_row:
        return "", ""
    slopes = [trace.slope(stage) for trace in traces]
    a, b = (0.0 if s is None else settled(float(s[row, token])) for s in slopes)
    return pair(a, b) if a or b else ("", "")


def _group(trace: Trace, row: int) -> str:
    if int(trace.group[row]) < 0:
        return "none"
    rows = (trace.group == trace.group[row]).nonzero().flatten().tolist()
    if len(rows) == 1:
        return f"row {row} alone"
    if rows[-1] - rows[0] == len(rows) - 1:
        return f"rows {rows[0]} to {rows[-1]}"
    if len(rows) <= 4:
        return "rows " + ", ".join(map(str, rows))
    return f"{len(rows)} rows"
