"""The parts of a bug page, each from the comparison's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gradebook.analysis.comparison import (
    Comparison,
    compare,
    mean_kl,
    row_weight,
    same,
    token_advantage,
    trained_tokens,
)
from gradebook.analysis.formula import Worked
from gradebook.analysis.matrix import matrix
from gradebook.analysis.source import Listing, beside, first_sentence
from gradebook.bugs import Swap
from gradebook.cases.scenario import Scenario
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import digits_apart, plain, settled, signed
from gradebook.engine.grouping import divisible
from gradebook.engine.pipeline import CORRECT, run
from gradebook.engine.trainer import evaluated
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import prompts_of
from gradebook.ui.parts.words import safe


def claim(scenario: Scenario, bug: Swap, now: str) -> None:
    """The status, the source, the stage; one sentence, and what it does to
    the selected row."""
    links = " · ".join(
        f"[{words.plain(s.label)}]({s.url})" if s.url else words.plain(s.label)
        for s in scenario.sources[:1]
    )
    st.markdown(
        f"{words.STATUS[scenario.status]} {words.plain(scenario.trainer)} ·"
        f" {links} · breaks the stage `{bug.stage}`  \n"
        f"**{words.plain(scenario.claim)}** {words.plain(now)}"
    )


def affected(scenario: Scenario) -> None:
    """The story, the sources, and 'am I affected?', folded."""
    told = scenario.affected
    with st.expander("The story, the sources, and: am I affected?"):
        keys = "\n".join(f"  - `{key}`" for key in told.keys)
        said = (
            f"{words.plain(scenario.story)}\n\n"
            f"**Status.** {words.plain(scenario.status_note)}\n\n"
            f"- **Trainer:** {words.plain(told.trainer)}\n"
            f"- **Versions:** {words.plain(told.versions)}\n"
            f"- **Switched on by:**\n{keys}\n"
            f"- **Where to look in your code:** {words.plain(told.look)}\n"
            f"- **Workaround:** {words.plain(told.workaround)}"
        )
        lines = []
        for source in scenario.sources:
            name = words.plain(source.label)
            link = f"[{name}]({source.url})" if source.url else name
            commit = f", commit `{source.commit}`" if source.commit else ""
            note = f": {words.plain(source.note)}" if source.note else ""
            lines.append(f"- {link}{commit}{note}")
        st.markdown(said + "\n\n**Sources**\n" + "\n".join(lines))


def dispute(scenario: Scenario) -> None:
    """Both views of a report that is no agreed bug, and the fix's trap."""
    if scenario.dispute is None:
        return
    st.markdown(words.titled("Is it a bug? That is disputed"))
    views = (
        ("The maintainer", scenario.dispute.maintainer),
        ("The other view", scenario.dispute.other_view),
        ("The trap in the fix", scenario.dispute.trap),
    )
    for part, (title, text) in zip(st.columns(3), views):
        with part:
            st.markdown(f"**{title}**  \n{words.plain(text)}")


def first_difference(comparison: Comparison) -> str:
    """Where the engines part, in a sentence."""
    if not comparison.diverging:
        return "Every stage gives the same numbers on this batch."
    first = comparison.diverging[0]
    return (
        f"The first stage that differs is **{first}**; all before it are"
        " equal."
    )


def strip(draft: Draft, bug: Swap, comparison: Comparison) -> str:
    """The stages in order; the first that differs is chosen. The chosen."""
    diverging = comparison.diverging
    said = first_difference(comparison)
    st.markdown(words.titled("Where it goes wrong", said))
    labels = {
        s: f"{s} ≠" if s in diverging else f"{s} =" for s in comparison.stages
    }
    key = f"stage-{draft.scenario.name}-{diverging[:1]}"
    default = diverging[0] if diverging else bug.stage
    st.session_state.setdefault(key, default)
    chosen = st.segmented_control(
        "Stage",
        list(labels),
        format_func=labels.__getitem__,
        key=key,
        required=True,
        label_visibility="collapsed",
    )
    return chosen or default


def stage(draft: Draft, bug: Swap, comparison: Comparison, stage: str) -> None:
    """Both engines' results of one stage, under its name."""
    swapped = bug if stage == bug.stage else None
    stage_body(draft, swapped, comparison, stage, words.titled(stage, level=3))


def stage_body(
    draft: Draft,
    bug: Swap | None,
    comparison: Comparison,
    stage: str,
    head: str = "",
) -> None:
    """Both engines' results of one stage, named in words; `bug` is the one
    that swaps it, `head` what stands above."""
    said = head + words.plain(words.STAGES[stage])
    if bug is not None:
        said += (
            f"\n\ncorrect: {words.plain(first_sentence(bug.correct))}  \n"
            f"faulty: {words.plain(first_sentence(bug.faulty))}"
        )
    st.markdown(said)
    a, b = (
        getattr(comparison.correct, stage),
        getattr(comparison.faulty, stage),
    )
    if stage == "loss":
        rows = [("loss", a, b, bool(comparison.differs("loss")))]
        for part in ("policy_loss", "kl_loss"):
            x = getattr(comparison.correct, part).sum()
            y = getattr(comparison.faulty, part).sum()
            rows.append((part.replace("_", " "), x, y, not bool(same(x, y))))
        body = [
            [name, *_pair(float(x), float(y), 6), "≠" if off else ""]
            for name, x, y, off in rows
        ]
        table(["", "correct", "faulty", ""], body, numbers=(1, 2))
        return
    off = comparison.differs(stage).tolist()
    prompts = prompts_of(draft.table, comparison)
    body = []
    for row, (x, y) in enumerate(zip(a.tolist(), b.tolist())):
        shown = _pair(x, y, 3)
        body.append([str(row), prompts[row], *shown, "≠" if off[row] else ""])
    table(
        ["row", "prompt", "correct", "faulty", ""],
        body,
        numbers=(2, 3),
        at=draft.row,
    )


def _pair(
    x: float | bool | int, y: float | bool | int, least: int
) -> list[str]:
    if isinstance(x, bool):
        return ["yes" if x else "no", "yes" if y else "no"]
    if isinstance(x, int):
        return [_group(x), _group(int(y))]
    x, y = settled(x), settled(float(y))
    digits = digits_apart(x, y, least)
    return [plain(x, digits), plain(y, digits)]


def _group(number: int) -> str:
    return "none" if number < 0 else str(number)


def why(
    comparison: Comparison, row: int, heard: tuple[Worked, Worked]
) -> None:
    """The selected row's formula with its numbers, both sides."""
    st.markdown(words.titled(f"Why: row {row}", level=3))
    sides = zip(("correct ●", "faulty ◇"), heard)
    st.html("".join(_formula(name, worked) for name, worked in sides))
    if comparison.correct.gradient is not None:
        _tokens(comparison, row)


def _formula(name: str, worked: Worked) -> str:
    lines = [f'<div class="line"><b>{safe(name)}</b></div>']
    for line in worked.lines:
        parts = "".join(
            f'<span class="off">{safe(p.text)}</span>'
            if p.differs
            else safe(p.text)
            for p in line
        )
        lines.append(f'<div class="line">{parts}</div>')
    return '<div class="gb">' + "".join(lines) + "</div>"


def _tokens(comparison: Comparison, row: int) -> None:
    """The gradient of the row, token by token, with what it is made of."""
    batch = comparison.batch
    beta = batch.settings.beta
    st.markdown(
        "Gradient at each token: policy part −A × weight, KL part"
        f" β (1 − exp(ref − logp)) × weight, with β = {beta:g}. A row that"
        " is not trained has none."
    )
    traces = (comparison.correct, comparison.faulty)
    weights = [row_weight(batch, trace, row) for trace in traces]
    body = []
    for t in range(batch.mask.shape[1]):
        if not bool(batch.mask[row, t]):
            body.append([f"t{t + 1}", "masked", *[""] * 6])
            continue
        gap = "none"
        if batch.ref_logp is not None:
            gap = signed(float(batch.ref_logp[row, t] - batch.logp[row, t]))
        cells = [f"t{t + 1}", gap]
        for part in ("policy_gradient", "kl_gradient"):
            a = float(getattr(comparison.correct, part)[row, t])
            b = float(getattr(comparison.faulty, part)[row, t])
            cells += [signed(settled(v), 5) for v in (a, b)]
        cells += [plain(w, 5) for w in weights]
        body.append(cells)
    named = ["weight, correct", "weight, faulty"]
    if weights[0] == weights[1]:
        named = ["weight"]
        body = [cells[:-1] for cells in body]
    table(
        [
            "token",
            "ref − logp",
            "policy, correct",
            "policy, faulty",
            "KL, correct",
            "KL, faulty",
            *named,
        ],
        body,
        numbers=range(1, 8),
    )


def the_line(bug: Swap) -> None:
    """Both functions from their files, the lines that differ marked."""
    st.markdown(words.titled("The line"))
    listings = beside(bug.correct, bug.faulty)
    sides = zip(("correct", "faulty"), listings, ("off-c", "off-f"))
    shown = "".join(_listing(*side) for side in sides)
    st.html(f'<div class="gb-two">{shown}</div>')


def _listing(name: str, listing: Listing, mark: str) -> str:
    lines = []
    for line in listing.lines:
        number = f"{line.number:4d}" if line.number else "    "
        sign = "≠" if line.differs else " "
        style = f' class="{mark}"' if line.differs else ""
        text = safe(line.text) or " "
        lines.append(f"<span{style}><i>{number} {sign} </i>{text}</span>")
    return (
        f'<div class="gb"><div class="file"><b>{name}</b>,'
        f" {safe(listing.file)}</div>"
        f'<pre tabindex="0" role="region" aria-label="{name} code">'
        + "".join(lines)
        + "</pre></div>"
    )


def guard(batch: Batch) -> None:
    """What the first version of the fix became, on this batch."""
    title = "**The guard that the first fix became**  \n"
    try:
        divisible(batch)
    except GradebookError as error:
        st.markdown(
            f"{title}It raises here, so this run would stop:"
            f" `{str(error).replace('`', '')}`."
        )
        return
    faulty = run_differs(batch)
    bites = (
        "and the bug bites all the same: divisible is not aligned."
        if faulty
        else "and on this batch the strides fall on the prompts."
    )
    st.markdown(
        f"{title}It passes here: {batch.rows} rows divide by the group size,"
        f" {bites}"
    )


def run_differs(batch: Batch) -> bool:
    """Strides and prompts group the batch differently."""
    from gradebook.cases.record import bug

    return not compare(bug("partial_groups"), batch).agree


def phases(bug: Swap, batch: Batch, evaluation: bool) -> None:
    """Loss and metrics without the guard, with it, and with it confined to
    training."""
    engines = [bug.engine, CORRECT, bug.engine if evaluation else CORRECT]
    traces = [
        evaluated(e, batch) if evaluation else run(e, batch) for e in engines
    ]
    phase = "evaluation" if evaluation else "training"
    body = [
        [f"{phase} loss", *(plain(float(t.loss), 5) for t in traces)],
        ["mean KL", *(plain(mean_kl(batch, t), 5) for t in traces)],
        [
            "tokens in the loss",
            *(str(trained_tokens(batch, t)) for t in traces),
        ],
    ]
    table(
        ["", "no guard", "guard always (the fix)", "guard in training only"],
        body,
        numbers=(1, 2, 3),
    )
    if evaluation and not traces[1].trained.any():
        st.markdown(
            "With one generation a prompt every group is a lone row, every"
            " spread is 0, and the fix leaves nothing to evaluate."
        )


def other_run(scenario: Scenario, bug: Swap, batch: Batch) -> None:
    """A second run beside this one, and the difference token by token."""
    other = scenario.other_run
    if other is None:
        return
    note = words.plain(other.note)
    st.markdown(words.titled("Two runs side by side", note))
    second = other.batch(batch.settings)
    body = []
    for name, engine in (("correct", CORRECT), ("faulty", bug.engine)):
        a = token_advantage(batch, run(engine, batch))
        b = token_advantage(second, run(engine, second))
        diff = "shapes differ"
        if a.shape == b.shape:
            diff = _matrix((b - a).tolist())
        body.append([name, _matrix(a.tolist()), _matrix(b.tolist()), diff])
    table(
        ["engine", "this batch", other.title, "observed_advantage_diff"], body
    )


def _matrix(values: list[list[float]]) -> str:
    rows = (", ".join(f"{settled(v):g}" for v in row) for row in values)
    return "[" + ", ".join(f"[{row}]" for row in rows) + "]"


def estimators(
    scenario: Scenario, bug: Swap, batch: Batch, edited: bool
) -> None:
    """This batch under each named estimator, correct and faulty. The
    scenario's note is of the batch that is not `edited`."""
    if not scenario.estimators:
        return
    note = words.plain(scenario.estimators_note)
    if edited and note:
        note = f"In the unedited case: {note}"
    st.markdown(words.titled("This batch under other estimators", note))
    body = []
    for line in matrix(batch, bug.engine, scenario.estimators):
        if line.wrong is not None:
            body.append([line.estimator, str(line.wrong), "", ""])
            continue
        sides = [_row(side.tolist()) for side in (line.correct, line.faulty)]
        said = "differs" if line.rows else "same"
        body.append([line.estimator, *sides, said])
    table(["estimator", "correct", "faulty", ""], body)


def _row(values: list[float]) -> str:
    shown = [signed(settled(v)) for v in values[:12]]
    return "  ".join(shown) + (" …" if len(values) > 12 else "")


def table(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    numbers: Sequence[int] | range = (),
    at: int | None = None,
    heads: int = 0,
    label: str = "",
) -> None:
    """A plain table; `numbers` are columns aligned at the decimal point,
    `at` the row to mark, `heads` how many first cells name their row."""

    def line(tag: str, cells: Sequence[str], mark: str = "") -> str:
        inner = ""
        for c, cell in enumerate(cells):
            kind = tag if cell else "td"  # an empty header names nothing
            style = " class=n" if c in numbers else ""
            if c < heads and tag == "td" and cell:
                inner += f'<th scope="row">{safe(cell)}</th>'
                continue
            inner += f"<{kind}{style}>{safe(cell)}</{kind}>"
        return f"<tr{mark}>{inner}</tr>"

    rows = "".join(
        line("td", cells, ' class="at"' if r == at else "")
        for r, cells in enumerate(body)
    )
    label = safe("Numbers: " + (label or ", ".join(h for h in head if h)))
    st.html(
        f'<div class="gb" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead>{line('th', head)}</thead><tbody>{rows}</tbody>"
        "</table></div>"
    )
