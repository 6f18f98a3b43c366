"""The map as the index of the bugs: a tile for each, above its stage."""

from __future__ import annotations

from gradebook.bugs import BUGS
from gradebook.cases.scenario import load
from gradebook.output.pipeline_map import ASKS, stops
from gradebook.ui.parts import predict
from gradebook.ui.parts.affected import last_seen
from gradebook.ui.parts.markup import show
from gradebook.ui.parts.thumbnail import thumbnail
from gradebook.ui.parts.words import safe


def index(following: str | None) -> str:
    """Draws it; the bug that was chosen, or ''.

    following  the bug that is marked as the next
    """
    done = predict.progress().uncovered()
    stages = "".join(
        f'<section><div class="tiles">{"".join(_tile(b.name, following) for b in bugs)}'
        f"</div><h3><code>{stage}</code></h3><p>{safe(ASKS[stage])}</p></section>"
        for stage, bugs in stops().items()
    )
    return show(
        '<div class="gb-index"><header>'
        f"<h2>{len(BUGS)} bugs, each at the stage that it breaks</h2>"
        f"<p><b>{len(done)}</b> of {len(BUGS)} uncovered</p>"
        "<p>Predict what a bug does to the blue dots, and its picture fills in.</p>"
        '<input type="search" placeholder="Trainer, bug or stage"'
        ' aria-label="Find a bug by trainer, bug or stage">'
        f'</header><div class="stages">{stages}</div></div>',
        key="index",
    )


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
