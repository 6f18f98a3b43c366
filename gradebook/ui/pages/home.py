"""Home: one reward to drag, and the bugs at the stages that they break."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any
from urllib.parse import quote

import streamlit as st

from gradebook.analysis.comparison import Comparison, compare
from gradebook.bugs import BUGS, swap
from gradebook.cases.home_case import HomeCase, home_case
from gradebook.cases.rules import RULES
from gradebook.cases.scenario import Scenario, by_rule, by_stage, load
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import DUST, counted
from gradebook.engine.pipeline import CHAPTERS, CORRECT, run
from gradebook.output import figures, policies
from gradebook.output.panels import Panel, summary, telling, token_panel
from gradebook.training.transformer import outcome
from gradebook.training.transformer.experiments import experiment
from gradebook.training.transformer.results import read_run
from gradebook.ui.board.lesson import TITLES
from gradebook.ui.board.view import view
from gradebook.ui.parts import drafts
from gradebook.ui.parts.address import next_bug, page_files
from gradebook.ui.parts.affected import affected_bugs, last_seen
from gradebook.ui.parts.drafts import PageDraft
from gradebook.ui.parts.unnamed import missed as missed_of
from gradebook.ui.parts.widget import download, folded, markup
from gradebook.ui.parts.words import safe
from gradebook.ui.program import stub

ALSO = {
    "primer": "What an advantage is, in one minute",
    "consequences": "Does it matter? Train two policies",
    "bug_or_not": "Bug or not? A game with false alarms",
    "mystery": "Mystery trainer",
    "sandbox": "Sandbox",
    "trainers": "Trainers",
}
SCENE = {
    "title": "One unfinished answer can make training punish three right ones.",
    "story": "Row 3 was cut off before it finished. The trainer does not train on it,"
    " yet its reward still enters the group's mean.",
    "task": "Drag that reward below 1, and the policy no longer collapses.",
    "method": "Gradebook shows such bugs in numbers that you can move. GRPO, which most"
    " of these trainers offer, compares each answer with the other answers to its"
    " prompt, its group. The curves show two policies, one trained with each engine, at"
    " the reward that you drag. Above 1 an unfinished answer earns more than a finished"
    " one. This can happen if a reward grows with length.",
}
"""The words above the frame's halves."""
_mount = st.components.v2.component("gradebook_home", js=stub("home"))


def _note() -> str:
    """How the numbers of the frame's two halves were made."""
    trained = outcome.trained_on(read_run(), experiment(home_case().bug).rollouts)
    return (
        "Left: AReaL's settings. If row 3's reward is above 1, the faulty advantage of"
        " rows 0 to 2 stays at \u22120.5: their distance from the mean grows as the"
        " deviation does."
        f" Right: {trained} Thin lines are single seeds. {outcome.CLAIMED}"
    )


def home() -> None:
    with st.container(key="first-screen"):
        st.title(
            f"{len(BUGS)} reported bugs in how RL trainers turn rewards into updates",
            anchor=False,
        )
        # The frame holds every setting, so a drag runs nothing here.
        progress = drafts.PROGRESS.get()
        _mount(key="home-frame", data=[frame_data() | {"progress": progress.text()}])
        following = next_bug()
        chosen = markup(_first_line(following), key="first-line")
    chosen = markup(_index(following), key="index") or chosen
    if chosen in page_files():
        st.switch_page(page_files()[chosen])
    title = "Am I affected? Choose your trainer and its version"
    folded(title, "affected-bugs", affected_bugs)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        server = (st.context.url or "").split("?")[0].rstrip("/").removesuffix("/home")
        drawing = partial(figures.map_file, server)
        download("The map as SVG", "gradebook-map.svg", drawing, type="tertiary")
        if progress.guesses:
            fresh = drafts.Progress(mine=progress.mine)
            clear = partial(drafts.PROGRESS.put, fresh)
            label, hint = "Start over", "Hides every answer again."
            st.button(label, "start-over", hint, on_click=clear, type="tertiary")
    st.markdown("What you type stays on the server that runs this page.")


@cache
def frame_data() -> dict[str, Any]:
    """What the frame draws, at each stop of the dragged reward: the board on the left,
    and on the right what becomes of two policies that train with it."""
    case = home_case()
    boards = [_board(case, stop) for stop in case.stops]
    sides = [board["panels"][0]["text"] for board in boards]
    values = [board["panels"][0]["engines"][1][case.row_in_words] for board in boards]
    signs = [(value > DUST) - (value < -DUST) for value in values]
    return {
        "board": boards[0] | _same_axes(boards),
        "start": case.stops.index(case.start),
        "about": case.about,
        "stops": [
            {
                "value": stop,
                "board": {key: board[key] for key in ("rows", "causes", "summary")}
                | _same_axes(boards, number),
                "text": [side[case.row_in_words] for side in sides[number]],
                "way": case.ways[signs[number] + 1],
            }
            for number, (stop, board) in enumerate(zip(case.stops, boards))
        ],
        "right": policies.home(case.bug, case.stops),
        "scene": SCENE,
        "note": _note(),
    }


def _board(case: HomeCase, stop: float) -> dict[str, Any]:
    """The board with this reward, on which nothing else can be edited."""
    rows = case.rows.with_cells({(case.focus, "reward"): stop})
    draft = PageDraft(replace(case, rows=rows))
    columns = {"prompt": "prompt", "reward": "reward", "eos": "finished?"}
    shown = view(draft, kind="advantage", covered=False)
    return shown | {
        "epoch": case.name,
        "columns": [
            [name, columns[name], kind, words]
            for name, _, kind, words in shown["columns"]
        ],
        "fixed": {"line": case.focus, "values": list(case.stops)},
    }


def _same_axes(boards: list[dict[str, Any]], number: int = 0) -> dict[str, Any]:
    """The handles and panels of a board on axes that hold those of all boards."""
    board, axes = boards[number], [board["handles"]["axis"] for board in boards]
    low, high = min(a["low"] for a in axes), max(a["high"] for a in axes)
    reach = max(board["panels"][0]["reach"][1] for board in boards)
    axis = {"low": low, "high": high, "unit": None}
    panel = board["panels"][0] | {"reach": [reach, reach], "unit": [None, None]}
    return {"handles": board["handles"] | {"axis": axis}, "panels": [panel]}


def _first_line(following: str | None) -> str:
    """The line under the frame, as HTML: the next bug, what was predicted so far, and
    other ways to go on."""
    ways = {}
    if following is not None:
        which = "next" if drafts.PROGRESS.get().uncovered() else "first"
        ways[following] = f"Predict the {which} bug: {load(following).title}"
    bug = home_case().bug
    ways[bug] = f"This picture's bug: {load(bug).title}"
    ways["check"] = "Check your own run"
    return _links(ways, _so_far())


def _index(following: str | None) -> str:
    """The map of the bugs, as HTML; `following` is marked as next."""
    at_stage, chapters = by_stage(), ""
    for chapter, stages in CHAPTERS.items():
        count = sum(len(at_stage[stage]) for stage in stages)
        drawn = "".join(_stage(name, at_stage[name], following) for name in stages)
        chapters += (
            f'<div class="chapter {chapter}"><h3>{safe(TITLES[chapter])}'
            f" <small>{counted(count, 'bug')}</small></h3>"
            f'<div class="stages">{drawn}</div></div>'
        )
    return (
        '<div class="gb-index"><header>'
        f"<h2>{len(BUGS)} bugs of trainers</h2>"
        '<p class="view"><label><input type="radio" name="view" value="" checked>by'
        ' stage</label><label><input type="radio" name="view" value="" class="by-rule">'
        "by rule</label></p>"
        '<input type="search" placeholder="Trainer, bug or stage"'
        ' aria-label="Find a bug by trainer, bug or stage">'
        f'</header><div class="map">{chapters}</div>{_by_rule()}</div>{_links(ALSO)}'
    )


def _stage(stage: str, bugs: Sequence[str], following: str | None) -> str:
    tiles = "".join(_tile(name, following) for name in bugs)
    return (
        f'<section><div class="tiles">{tiles}</div><h4><code>{stage}</code></h4>'
        f"<p>{safe(figures.ASKS[stage])}</p></section>"
    )


def _by_rule() -> str:
    """The bugs by the rule that they break, which takes the place of the map."""
    sections = ""
    for rule, bugs in by_rule().items():
        named = RULES.get(rule)
        title, text = (named.title, named.text) if named else ("Other bugs", "")
        links = ", ".join(
            f'<a href="{name}" data-name="{name}">{safe(load(name).title)}</a>'
            for name in bugs
        )
        sections += (
            f"<div><p><b>{safe(title)}</b></p><p>{safe(text)}</p><p>{links}</p></div>"
        )
    return f'<div class="rules">{sections}</div>'


def _links(pages: dict[str, str], note: str = "") -> str:
    """Links in a line, and `note`, which is HTML, at its end."""
    links = "".join(
        f'<a href="{page}" data-name="{page}">{safe(label)}</a>'
        for page, label in pages.items()
    )
    return f'<p class="gb-ways">{links}{note}</p>'


def _tile(name: str, following: str | None) -> str:
    main, covered = load(name), drafts.covered(name)
    mark = "<i>next</i>" if name == following else ""
    look = "covered" if covered else "open"
    state = "not predicted yet" if covered else "revealed"
    text = f"{main.title} {main.standing} {main.trainer} {name} {last_seen(name)}"
    picture, alt = thumbnail(name, covered)
    return (
        f'<a href="{name}" data-name="{name}" data-find="{safe(text.lower())}"'
        f' class="{look}" title="{safe(main.standing)}">'
        f'<img alt="{safe(f"{main.title}: {alt}")}"'
        f' src="data:image/svg+xml,{quote(picture)}">{mark}<b>{safe(main.title)}</b>'
        f'<small>{safe(main.standing)}</small><span class="seen-not">{state}</span></a>'
    )


def _fingerprint(both: Comparison, scenario: Scenario) -> Panel:
    """One line for each line of the bug's board: a row, or a token."""
    if scenario.lines == "row":
        return telling(both, scenario.telltale.kind)
    return token_panel(both, scenario.lines)[0]


def _so_far() -> str:
    """What became of the predictions, and the challenges that were solved."""
    progress = drafts.PROGRESS.get()
    guesses = {n: g for n, g in progress.guesses.items() if n in BUGS}
    skipped = sum(guess.choice == drafts.SKIPPED for guess in guesses.values())
    missed, solved = len(missed_of(progress)), sum(map(len, progress.solved.values()))
    predicted = len(guesses) - skipped
    return (
        f"<span><b>{predicted}</b> of {len(BUGS)} predicted:"
        f" {predicted - missed} right, {missed} missed. {skipped} skipped."
        f" {counted(solved, 'challenge')} solved.</span>"
    )


@lru_cache(maxsize=256)
def thumbnail(name: str, covered: bool) -> tuple[str, str]:
    """A small picture of a bug's report, one line per row or token, as SVG, and what it
    shows in a sentence; nothing faulty while it is covered."""
    scenario = load(name)
    batch = scenario.batch()
    alt = "The correct engine's numbers. Predict the faulty ones."
    if not covered:
        try:
            panel = _fingerprint(compare(swap(name), batch), scenario)
            return figures.thumbnail(panel, 320, 100), summary(panel)
        except GradebookError:
            alt = "The faulty trainer stops with an error on this batch."
    correct = run(CORRECT, batch)
    panel = _fingerprint(Comparison(batch, correct, correct), scenario)
    panel = replace(panel, faulty=[math.nan] * len(panel.correct), flips=())
    return figures.thumbnail(panel, 320, 100), alt
