"""What stands around the board of a bug's page: the box with the question and the
verdict, the challenge, and the path through the stages. Pure functions, without
Streamlit; while the question is covered, nothing of the faulty engine is in them.
"""

from itertools import zip_longest
from typing import Any

from gradebook.analysis import challenges
from gradebook.analysis.comparison import by_row
from gradebook.cases.case import OF_ENGINES, Agree, Bounds, Challenge, Differ
from gradebook.cases.scenario import Scenario
from gradebook.core.formatting import counted, minus, pair, plain, settled, signed
from gradebook.engine.pipeline import Trace
from gradebook.output import panels
from gradebook.ui.board.view import browser_numbers, view
from gradebook.ui.parts.drafts import SKIPPED, Draft, Guess, Progress


def lesson(draft: Draft[Scenario], progress: Progress) -> dict[str, Any]:
    scenario = draft.scenario
    covered, task = progress.covered(scenario.name), challenge(draft, progress)
    kind, places = scenario.telltale.kind, scenario.prediction.places
    shown = view(draft, kind=kind, covered=covered, places=places, lesson=True)
    return shown | {
        "box": box(draft, None if covered else progress.guesses[scenario.name]),
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
    }
    if guess is None:
        return question | {"choices": choices}
    choice, answer = guess.choice, f"The answer: {asked.choices[asked.answer]}."
    sentence = answer
    if choice != SKIPPED:
        sentence = asked.said[choice]
        if choice != asked.answer and not places:  # the numbers do not show it
            sentence += f" {answer}"
    panel = panels.telling(draft.original, scenario.telltale.kind)
    values = panel.correct[scenario.focus], panel.faulty[scenario.focus]
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
    rows = task.edits.rows if task.edits and task.edits.columns == ("reward",) else ()
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
        "row": rows[0] if len(rows) == 1 else None,
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


ADVANTAGES = (*OF_ENGINES, "correct shift", "faulty shift")
"""Of a condition: what is read off an engine's advantage."""


def _live(draft: Draft, task: Challenge) -> str:
    """The number that decides the challenge, a faulty one first, or ""."""
    both = draft.comparison
    conditions = sorted(task.solved, key=lambda c: "faulty" not in getattr(c, "of", ""))
    for condition in conditions:
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


def path(draft: Draft, covered: bool) -> dict[str, Any]:
    """The selected row's result at each stage, and where the engines part."""
    both, row = draft.comparison, draft.shown_row
    traces = both.correct, both.correct if covered else both.faulty
    engines = ("correct",) if covered else ("correct", "faulty")
    stages, parts = [], None
    for number, stage in enumerate(both.stages):
        correct, faulty = (by_row(both.batch, t, stage)[row].item() for t in traces)
        write = signed if stage in ("standardized", "advantage") else plain
        texts = panels.written(correct, faulty, write=write)
        if stage == "group":
            texts = _group(traces[0], row), _group(traces[1], row)
        stages.append({"name": stage, **dict(zip(engines, texts))})
        if parts is None and texts[0] != texts[1]:
            parts = number
    return {"row": row, "stages": stages, "parts": parts, "open": draft.page.stage}


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
