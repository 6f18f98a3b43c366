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
    OF_BATCH,
    OF_ENGINES,
    OF_TOKENS,
    Agree,
    Bounds,
    Challenge,
    Differ,
)
from gradebook.cases.scenario import Scenario, bug
from gradebook.core.batch import Batch
from gradebook.core.formatting import (
    counted,
    minus,
    pair,
    plain,
    same,
    settled,
    short,
    signed,
)
from gradebook.engine.pipeline import CHAPTERS, SLOPES, Trace
from gradebook.output import panels
from gradebook.ui.board import token_board
from gradebook.ui.board.view import browser_numbers, view
from gradebook.ui.parts.drafts import SKIPPED, Guess, PageDraft, Progress


def lesson(
    draft: PageDraft[Scenario],
    progress: Progress,
    votes: bool = False,
    guessed: bool = True,
) -> dict[str, Any]:
    """The board and what is around it. If somebody `votes`, the question is the
    case's, also about a batch from elsewhere. Without `guessed` the reader's own guess
    is left out of the verdict."""
    scenario = draft.scenario
    covered = progress.covered(scenario.name)
    kind, places = scenario.telltale.kind, scenario.prediction.places
    guess = progress.guesses.get(scenario.name) if guessed else Guess(SKIPPED)
    guess = None if covered else guess
    task: dict[str, Any] | None = None
    if draft.has_other_batch and not (covered and votes):
        shown = view(draft, kind=kind, covered=covered, places=())
        asked = other_batch_box(draft, shown, covered)
    else:
        shown = view(draft, kind=kind, covered=covered, places=places)
        asked = box(draft, guess)
        if not covered:
            task = challenge(draft, progress)
        elif scenario.challenges:
            task = {"count": len(scenario.challenges)}
    return shown | {
        "box": asked,
        "challenge": task,
        "path": path(draft, covered),
    }


OTHER_BATCH_CHOICES = ("A smaller number", "The same", "A larger number")
"""What the faulty engine may do to a row of a batch from elsewhere."""


def other_batch_box(
    draft: PageDraft[Scenario], shown: dict[str, Any], covered: bool
) -> dict[str, Any]:
    """The box for a batch that is not the case's own: a question about the selected
    row, and after the answer what each engine does to this batch."""
    scenario, row = draft.scenario, draft.shown_row
    is_row = scenario.lines == "row"
    token = min(draft.state.token, draft.comparison.batch.mask.shape[1] - 1)
    place = f"row {row}" if is_row else f"token {token} of row {row}"
    facts = {
        "mechanism": minus(scenario.mechanism),
        "row": row,
        "token": None if is_row else token,
        "guess": None,
        "place": None,
    }
    other_batch: dict[str, Any] = {
        "source": minus(shown["source"]),
        "rule": minus(scenario.rule),
    }
    values = _result_of(draft.comparison, scenario, (row, token))
    if covered:
        question = (
            f"In this batch {place} gets {minus(pair(*values)[0])} in the correct"
            " engine. What does the faulty engine give it?"
        )
        choices = _other_batch_choices(values[0], shown)
        return facts | {
            "question": question,
            "choices": choices,
            "otherBatch": other_batch,
        }
    other_batch["sentence"] = shown["summary"]
    guess = draft.page.guess
    if guess and not draft.moved and row == draft.base.row:
        right = other_batch_answer(values) == guess.choice
        facts |= {"guess": guess.choice, "place": guess.place}
        other_batch |= {"right": right, "choice": OTHER_BATCH_CHOICES[guess.choice]}
    return facts | {"question": "", "choices": [], "otherBatch": other_batch}


def other_batch_answer(values: tuple[float, float]) -> int:
    """The number of the choice that is right."""
    correct, faulty = values
    return 1 if same(correct, faulty) else 2 * int(faulty > correct)


def _other_batch_choices(correct: float, shown: dict[str, Any]) -> list[dict[str, Any]]:
    """A smaller number, the same, or a larger one, with their places on the axis."""
    reach = shown["panels"][shown["numbers"]]["reach"][0]
    near = 0.02 * reach
    regions = ((None, correct - near), (correct, correct), (correct + near, None))
    places = (correct - reach / 3, correct, correct + reach / 3)
    return [
        {"text": text, "place": place, "region": region}
        for text, place, region in zip(OTHER_BATCH_CHOICES, places, regions)
    ]


def choices_of(draft: PageDraft[Scenario], votes: bool) -> int:
    """How many choices the question has."""
    is_of_other_batch = draft.has_other_batch and not votes
    return len(
        OTHER_BATCH_CHOICES if is_of_other_batch else draft.scenario.prediction.choices
    )


def answered(
    draft: PageDraft[Scenario], votes: bool, choice: int, place: float | None
) -> tuple[int, float | None]:
    """Takes the answer to the page's question. About a batch from elsewhere it is kept
    with that batch, and the case's question is skipped."""
    if not draft.has_other_batch or votes:
        return choice, place
    if choice != SKIPPED:
        draft.page.guess = Guess(choice, place)
    return SKIPPED, None


def box(draft: PageDraft[Scenario], guess: Guess | None) -> dict[str, Any]:
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
        "row": _in_question(draft),
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
            "sentence": minus(sentence),
            "why": minus(asked.why),
            "rule": minus(scenario.rule),
        },
    }


def _in_question(draft: PageDraft[Scenario]) -> int:
    """Where the row in question is now; -1 if it was removed. Rows that were only
    edited keep their place."""
    focus, rows = draft.scenario.focus, draft.state.table
    if rows["prompt"] == draft.origin.table["prompt"]:
        return focus
    came_from = challenges.changes(draft.origin, draft.state).came_from
    return came_from.index(focus) if focus in came_from else -1


def asked_about(draft: PageDraft[Scenario]) -> tuple[float, float]:
    """Both engines' result that the question is about, on the case as it came."""
    scenario = draft.scenario
    place = scenario.focus, scenario.token
    return _result_of(draft.original, scenario, place)


def _result_of(
    both: Comparison, scenario: Scenario, place: tuple[int, int]
) -> tuple[float, float]:
    """Both engines' result on a row, or on the token if lines are tokens."""
    if scenario.lines != "row":
        correct, faulty = token_board.sides(both)
        return float(correct[place]), float(faulty[place])
    panel = panels.telling(both, scenario.telltale.kind)
    return float(panel.correct[place[0]]), float(panel.faulty[place[0]])


def challenge(draft: PageDraft[Scenario], progress: Progress) -> dict[str, Any] | None:
    """The challenge that is shown, judged on the batch as it was last committed."""
    name, tasks = draft.scenario.name, draft.scenario.challenges
    if not tasks:
        return None
    number = chosen(draft, progress)
    task, solved = tasks[number], progress.solved.get(name, set())
    missing, shown = judged(draft, task), progress.shown.get(name, set())
    return {
        "at": number,
        "count": len(tasks),
        "done": [task in solved for task in range(len(tasks))],
        "goal": minus(task.goal),
        "allowed": challenges.allowed(task.edits) if task.edits else "",
        "hint": minus(task.hint),
        "insight": minus(task.insight),
        "solved": not missing,
        "shown": number in shown,
        "missing": minus(missing),
        "live": "" if draft.fault else _live(draft, task),
        "row": _slides(draft, task),
    }


def chosen(draft: PageDraft[Scenario], progress: Progress) -> int:
    """The number of the challenge to show: the one that was chosen, else the first that
    is not solved."""
    if draft.page.challenge is not None:
        return draft.page.challenge
    solved = progress.solved.get(draft.scenario.name, set())
    numbers = range(len(draft.scenario.challenges))
    return next((number for number in numbers if number not in solved), 0)


def note_solved(draft: PageDraft[Scenario], progress: Progress) -> None:
    """Judges the challenge that is shown, and notes it if the batch solves it and its
    solution was not shown. While something is dragged or typed it waits."""
    name, tasks = draft.scenario.name, draft.scenario.challenges
    if progress.covered(name) or not tasks or draft.has_other_batch:
        return
    # From here on the challenge stays, also once it is solved.
    number = draft.page.challenge = chosen(draft, progress)
    draft.page.judged = judged(draft, tasks[number])
    if number not in progress.shown.get(name, set()) and not draft.page.judged:
        progress.solved.setdefault(name, set()).add(number)


def judged(draft: PageDraft[Scenario], task: Challenge) -> str:
    """The condition of a challenge that the batch misses, in words; '' if it solves the
    challenge. During a drag or while text is typed, the last judgement."""
    if draft.refused:
        return next(why for _, why in draft.refused.values())
    if draft.typing:
        return draft.page.judged
    return challenges.missing(task, draft.attempt)


def _slides(draft: PageDraft[Scenario], task: Challenge) -> int | None:
    """The line with the only handle that the challenge lets the reader move."""
    scenario, edits = draft.scenario, task.edits
    if edits is None or len(edits.rows) != 1 or edits.columns != scenario.drag[:1]:
        return None
    if scenario.lines == "row":
        return edits.rows[0]
    return token_board.handle_of(draft, edits.rows[0])


def _live(draft: PageDraft[Scenario], task: Challenge) -> str:
    """The number that decides the challenge, of the first condition that does not hold,
    and whether there are edits beyond what it allows."""
    attempt = draft.attempt
    numbers = [c for c in task.solved if isinstance(c, (Agree, Differ, Bounds))]
    numbers.sort(key=lambda c: "faulty" not in getattr(c, "of", ""))
    open_ones = (c for c in numbers if challenges.missing_of(c, attempt))
    condition = next(open_ones, numbers[0] if numbers else None)
    beyond = task.edits and challenges.overstepped(task.edits, attempt.changes)
    words = ["other edits too"] if beyond else []
    if isinstance(condition, Bounds):
        words.insert(0, _measured(condition, attempt))
    elif condition:
        words.insert(0, _differing(draft))
    return ", ".join(words)


def _differing(draft: PageDraft[Scenario]) -> str:
    both = draft.comparison
    if draft.scenario.lines != "row":
        correct, faulty = token_board.sides(both)
        count = int((~same(correct, faulty) & both.batch.mask).sum())
        return counted(count, "token differs", "tokens differ")
    count = int((both.differs("advantage") | both.differs("gradient")).sum())
    return counted(count, "row differs", "rows differ")


SHORT = {
    "rows": "rows",
    "correct trains": "rows trained",
    "loss ratio": "faulty / correct loss",
    "ratio": "faulty / correct",
    "kept_steps": "kept",
    "eos": "EOS",
    "pieces": "rows of its rollout",
}
"""What a pill calls a quantity that is no advantage and no push."""
ADVANTAGES = (*OF_ENGINES, *OF_TOKENS, "correct shift", "faulty shift")


def _measured(condition: Bounds, attempt: challenges.Attempt) -> str:
    """'row 9: −0.500', 'row 9: −0.500, right on 3 of 4 rows', 'rows: 12'."""
    measure = challenges.measured(condition, attempt)
    if measure is None:
        rows = condition.rows
        return f"no row {rows[0]}" if isinstance(rows, tuple) else "no such row"
    if condition.of in ADVANTAGES:
        number = signed(settled(measure.value))
        if condition.of.startswith("correct"):
            number = f"correct {number}"
    else:
        number = short(settled(measure.value), 4)
    name = SHORT.get(condition.of, condition.of)
    if condition.of in OF_BATCH:
        return f"{name}: {number}"
    place = f"row {measure.row}"
    if condition.of in OF_TOKENS:
        place += f", token {condition.token}"
    words = f"{place}: {number}"
    if condition.of not in ADVANTAGES:
        words = f"{place}, {name}: {number}"
    if condition.every and measure.rows > 1:
        words += f"; right on {measure.met} of {measure.rows} rows"
    return words


TITLES = {
    "rows": "Reward to advantage, by row",
    "tokens": "Advantage, by token",
    "loss": "Loss, by token",
}
"""What the chapters of the path are called."""
RESULTS = {"rows": "advantage"}
"""The stage whose number represents a chapter, if it is not the last."""


def path(draft: PageDraft, covered: bool) -> dict[str, Any]:
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
    the token's logp if there are some; and whether the two engines differ in it."""
    if stage == "group":
        texts = _group(traces[0], row), _group(traces[1], row)
    else:
        correct, faulty = (_result(batch, t, stage, row, token) for t in traces)
        texts = panels.written(correct, faulty, write=WRITES.get(stage, plain))
        if stage == "weight":
            texts = _share(correct, faulty)
    slopes = _slopes(batch, traces, stage, row, token)
    differs = texts[0] != texts[1] or slopes[0] != slopes[1]
    if stage == "trained":
        texts = _trained(batch, traces[0], row), _trained(batch, traces[1], row)
    shown: dict[str, Any] = {"name": stage, "texts": texts[:sides]}
    if any(slopes):
        shown["slopes"] = slopes[:sides]
    return shown, differs


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


def _trained(batch: Batch, trace: Trace, row: int) -> str:
    """Whether the row is trained; one with tokens is not if its advantage is 0."""
    if bool(trace.trained[row]):
        return "yes"
    is_flat = bool(batch.has_tokens[row]) and not settled(float(trace.advantage[row]))
    return "no (advantage 0)" if is_flat else "no"


def _slopes(
    batch: Batch, traces: tuple[Trace, Trace], stage: str, row: int, token: int | None
) -> tuple[str, str]:
    """How the stage's number changes with the token's logp, as text; "" for both if
    neither changes, or if a row has one ratio: that slope is not one token's own."""
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
