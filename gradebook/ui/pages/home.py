"""Home: one reward to drag, and the bugs at the stages that they break."""

from __future__ import annotations

import math
import secrets
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gradebook.analysis.comparison import Comparison, compare
from gradebook.bugs import BUGS, swap
from gradebook.cases.record import bug
from gradebook.cases.scenario import Scenario, load
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output import figures
from gradebook.output.panels import (
    Panel,
    panels,
    squashes,
    summary,
    telling,
)
from gradebook.output.pipeline_map import ASKS, map_file, stops
from gradebook.training.shipped import BUG, STOPS, curves
from gradebook.training.study import study
from gradebook.ui.board.program import stub
from gradebook.ui.parts import predict
from gradebook.ui.parts.predict import next_bug
from gradebook.ui.parts.report import affected_bugs, last_seen
from gradebook.ui.parts.shell import page_files, tool_files
from gradebook.ui.parts.widget import download, folded
from gradebook.ui.parts.widget import markup as show
from gradebook.ui.parts.words import safe
from gradebook.ui.security import own_path

ALSO = {
    "primer": "What an advantage is, in one minute",
    "consequences": "Does it matter? Train two policies",
    "bug_or_not": "Bug or not? A game with false alarms",
    "mystery": "Mystery trainer",
    "sandbox": "Sandbox",
    "trainers": "Trainers",
}
"""Other ways to meet the bugs."""
NOTE = (
    '<p class="gb-note">Left: the settings are AReaL\'s. Above 1 the faulty advantage'
    " is always −0.5, because the group's spread grows as fast as the distance from"
    " its mean. Right: tables, not language models, trained in advance at 11 rewards"
    " with 200 updates, Adam 0.05 and 16 seeds.</p>"
)
START = 1.1
"""Where it opens: right answers are pushed down, and the policy collapses."""
_mount = st.components.v2.component("gradebook_home", js=stub("home"))


def home() -> None:
    """The way in."""
    st.title(
        "One unfinished answer can turn three right ones into mistakes.", anchor=False
    )
    st.markdown(
        "Row 3 is right too, but it never stopped. The trainer does not train it, but"
        " its reward still counts in the group's mean. **Drag that reward below 1, and"
        " the policy no longer collapses.**"
    )
    _frame()
    chosen = _index(next_bug())
    if chosen in page_files():
        st.switch_page(page_files()[chosen])
    title = "Am I affected? Choose your trainer and its version"
    folded(title, "affected-bugs", affected_bugs)
    _foot()


def _frame() -> None:
    """The frame. It holds every setting, so a drag runs nothing here."""
    progress = {"progress": predict.progress().text()}
    _mount(key="home-frame", data=[frame_data() | progress])


@cache
def frame_data() -> dict[str, Any]:
    """What the frame draws: both engines' advantages and the curves, by the
    reward of row 3."""
    trained = curves()
    stops = []
    for stop in STOPS:
        rewards = [1.0, 1.0, 1.0, float(stop), 1.0, 0.0]
        batch = Batch(
            [0, 0, 0, 0, 1, 1],
            rewards,
            eos=[True, True, True, False, True, True],
            settings=study(BUG).settings,
        )
        both = compare(swap(BUG), batch)
        seeds = trained["faulty"][f"{stop:g}"]
        stops.append(
            {
                "reward": stop,
                "rewards": rewards,
                "advantages": [
                    [round(x, 4) for x in trace.advantage.tolist()]
                    for trace in (both.correct, both.faulty)
                ],
                "seeds": seeds,
                "mean": [round(sum(values) / len(values)) for values in zip(*seeds)],
            }
        )
    return {
        "start": STOPS.index(START),
        "stops": stops,
        "updates": trained["updates"],
        "correct": trained["correct"],
    }


def _index(following: str | None) -> str:
    """What stands below the frame, in one element; the page that was chosen,
    or ''.

    following  the bug that is marked as the next
    """
    done = predict.progress().uncovered()
    stages = "".join(
        f'<section><div class="tiles">{"".join(_tile(b.name, following) for b in bugs)}'
        f"</div><h3><code>{stage}</code></h3><p>{safe(ASKS[stage])}</p></section>"
        for stage, bugs in stops().items()
    )
    also = "".join(_link(*one) for one in ALSO.items() if one[0] in tool_files())
    return show(
        f'<p class="gb-ways">{_ways(following)}</p>{NOTE}'
        '<div class="gb-index"><header>'
        f"<h2>{len(BUGS)} bugs, each at the stage that it breaks</h2>"
        f"<p><b>{len(done)}</b> of {len(BUGS)} uncovered</p>"
        "<p>Predict what a bug does to the blue dots, and its picture fills in.</p>"
        '<input type="search" placeholder="Trainer, bug or stage"'
        ' aria-label="Find a bug by trainer, bug or stage">'
        f'</header><div class="stages">{stages}</div></div>'
        f'<p class="gb-ways">{also}</p>',
        key="index",
    )


def _ways(following: str | None) -> str:
    """The next bug, the one in the picture, and the check, as links."""
    started = "next" if predict.progress().uncovered() else "first"
    links = {BUG: f"The bug in this picture: {load(BUG).title}"}
    if following is not None and following != BUG:
        title = f"Predict the {started} bug: {load(following).title}"
        links = {following: title, **links}
    links["check"] = "Check your own run"
    return "".join(_link(*one) for one in links.items())


def _link(page: str, label: str) -> str:
    return f'<a href="{page}" data-name="{page}">{safe(label)}</a>'


def _tile(name: str, following: str | None) -> str:
    main, covered = load(name), predict.covered(name)
    mark = "\u00a0←\u00a0next" if name == following else ""
    state = "not predicted yet" if covered else "uncovered"
    found = f"{main.title} {main.standing} {main.trainer} {name} {last_seen(name)}"
    return (
        f'<a href="{name}" data-name="{name}" data-find="{safe(found.lower())}"'
        f' class="{"covered" if covered else "open"}">'
        f"{thumbnail(main, covered)}<b>{safe(main.title)}{mark}</b>"
        f'<small>{safe(main.standing)}</small><span class="seen-not">{state}</span></a>'
    )


def _foot() -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        made = partial(map_file, _server())
        download("The map as SVG", "gradebook-map.svg", made, type="tertiary")
        if predict.progress().guesses:
            st.button(
                "Start over",
                key="start-over",
                type="tertiary",
                on_click=predict.start_over,
                help="Covers every bug again.",
            )
    st.markdown("Nothing you type leaves the machine that serves this page.")


def _server() -> str:
    """The address that the pages' names are put behind."""
    here = (st.context.url or "").split("?")[0].rstrip("/")
    return here.removesuffix("/home")


# A small picture of a case for its card: one line a row, as an image


PLACE = "card-pictures"
VERSION = secrets.token_hex(4)
"""Of this server's pictures: a browser keeps them until the next start."""
WIDTH, HEIGHT = 320, 120
COVERED = "The correct engine's numbers. Predict the faulty ones."
STOPPED = "The faulty trainer stops with an error on this batch."


def thumbnail(scenario: Scenario, covered: bool) -> str:
    """The picture of the case as it came, as an HTML image.

    covered  True leaves everything faulty out
    """
    said = COVERED if covered else told(scenario)
    side = "covered" if covered else "whole"
    file = own_path(f"/{PLACE}/{VERSION}/{scenario.bug}-{side}.svg")
    return (
        f'<img alt="{safe(f"{scenario.title}: {said}")}" loading="lazy"'
        f' width="{WIDTH}" height="{HEIGHT}"'
        f' src="{file}">'
    )


@lru_cache(maxsize=256)
def told(scenario: Scenario) -> str:
    """What the picture shows, in a sentence."""
    found = _compared(scenario)
    kind = scenario.telltale.kind
    return STOPPED if found is None else summary(found, kind)


async def answer(request: Request) -> Response:
    """The file that a browser asks for."""
    return file(request.path_params["name"])


def file(name: str) -> Response:
    """A picture by its file's name."""
    case, _, side = name.removesuffix(".svg").rpartition("-")
    if case not in BUGS or side not in ("covered", "whole"):
        return PlainTextResponse("not found", 404)
    return Response(
        drawn(case, side == "covered"),
        media_type="image/svg+xml",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


@lru_cache(maxsize=256)
def drawn(name: str, covered: bool) -> str:
    """The picture of a bug's report, as SVG."""
    scenario = load(name)
    found = _compared(scenario)
    if found is None:
        correct = run(CORRECT, scenario.batch()).advantage.tolist()
        panel = Panel("advantage", correct, [])
    else:
        shown = panels(found, scenario.telltale.kind)
        panel = shown[-1] if covered else telling(shown)
    if covered or found is None:
        panel = replace(panel, faulty=[math.nan] * len(panel.correct), flips=())
    return figures.thumbnail(panel, WIDTH, HEIGHT, not covered and squashes([panel]))


def _compared(scenario: Scenario) -> Comparison | None:
    """Both engines on the case; None where the faulty trainer stops."""
    try:
        return compare(bug(scenario.bug), scenario.batch())
    except GradebookError:
        return None
