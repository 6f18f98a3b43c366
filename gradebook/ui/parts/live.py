"""A training run on the page: the curves as they grow, what they show, and
what can be taken from them."""

from __future__ import annotations

import streamlit as st

from gradebook.cases.scenario import load
from gradebook.output.curves import (
    Curves,
    Dose,
    curves_csv,
    curves_svg,
    dose_svg,
)
from gradebook.training.effect import (
    LESS,
    MORE,
    SAME,
    Effect,
    effect,
    sentence,
)
from gradebook.training.study import UPDATES, Run, study
from gradebook.ui.parts import one_update, words
from gradebook.ui.parts.desk import Desk, pool
from gradebook.ui.parts.download import download
from gradebook.ui.parts.markup import show
from gradebook.ui.parts.tables import table
from gradebook.ui.runs.pool import DONE, ENDED, WAITING, Job, Task

BEAT = 0.08
"""Seconds from one drawing to the next while a run trains."""
PATIENT = 1.0
"""Seconds from one look at the queue to the next, for who is second in it."""


def live(mine: Desk) -> None:
    """The headline, the curves and the button that starts or stops, drawn
    by themselves while the run trains; beside them all settings tried."""
    job = mine.job() if mine.wanted == Task(mine.run) else None
    beat = None if job is None else _beat(job)
    left, right = st.columns([3, 2])
    with left:
        st.fragment(_live, run_every=beat)(mine, mine.run, beat)
    with right:
        _dose(mine)


def _beat(job: Job) -> float:
    """Seconds to the next drawing. Whoever is twice as far behind in the
    queue looks half as often, so a long queue costs the server little."""
    place = pool().place(job)
    return BEAT if place <= 1 else PATIENT * 2 ** (place.bit_length() - 2)


def _live(mine: Desk, run: Run, beat: float | None) -> None:
    job = mine.job() if mine.wanted == Task(run) else None
    # First the state: frames still come while it is read.
    over = job is not None and job.state in (DONE, ENDED)
    frames = mine.results.get(run, []) if job is None else list(job.frames)
    with st.container(key="training"):
        _headline(mine, run, job, frames)
        _picture(run, frames)
        _button(mine, run, frames)
    if job is not None and over:
        if job.error:
            mine.want(None)
        else:
            mine.settle(frames)
        mine.error = job.error
        st.rerun()
    if job is not None and _beat(job) != beat:
        st.rerun()


def _headline(mine: Desk, run: Run, job: Job | None, frames: list[dict]) -> None:
    """What the run shows, in words; before that, how far it is."""
    said = _verdict(mine, run, frames) or _progress(mine, job, frames)
    st.subheader(said, anchor=False)


def _progress(mine: Desk, job: Job | None, frames: list[dict]) -> str:
    if job is None and mine.error:
        return words.plain(f"The run ended: {mine.error}.")
    if job is None and frames:
        return f"Stopped after {_reached(frames)} of {UPDATES} updates."
    if job is None:
        return "This setting has not been trained yet."
    place = pool().place(job)
    if place > 1:
        return f"Waiting: place {place} in the queue."
    if job.state == WAITING:
        return "Waiting for the training process."
    return f"Training: {_reached(frames)} of {UPDATES} updates."


def _reached(frames: list[dict]) -> int:
    return frames[-1]["update"] if frames else 0


def _verdict(mine: Desk, run: Run, frames: list[dict]) -> str:
    """The result at the first update of the report that was reached."""
    one, found = study(run.bug), _reported(run, frames)
    if one.report[0] not in found:
        return ""
    first = found[one.report[0]]
    faulty = load(run.bug).engine_names[1]
    said = words.plain(sentence(one, run.value, first, one.report[0], faulty))
    return _guessed(mine, run, first) + said


def _guessed(mine: Desk, run: Run, found: Effect) -> str:
    """The guess beside the truth, on the run that was asked about."""
    guess, asked = mine.guesses.get(run.bug, ("", run))
    if not guess or asked != run:
        return ""
    choices = dict(zip((MORE, LESS, SAME), study(run.bug).measured.choices))
    said = f"You said {choices[guess]}"
    if guess == found.kind:
        return f"{said}, and that is right. "
    return f"{said}. "


def _reported(run: Run, frames: list[dict]) -> dict[int, Effect]:
    """The effects at the updates of the report that were reached."""
    one = study(run.bug)
    return {
        frame["update"]: _effect(run, frame)
        for frame in frames
        if frame["update"] in one.report
    }


def _effect(run: Run, frame: dict) -> Effect:
    """The faulty run beside the correct one, by the run's own measure."""
    correct, faulty, *_ = frame["values"][study(run.bug).measure]
    return effect(correct, faulty)


def _picture(run: Run, frames: list[dict]) -> None:
    show(curves_svg(curves(run, frames)), key="curves")
    diverged = _diverged(run, frames)
    if diverged:
        st.warning(diverged)


def curves(run: Run, frames: list[dict]) -> Curves:
    """The frames as a picture of the run's own measure."""
    one = study(run.bug)
    series = [frame["values"][one.measure] for frame in frames]
    names = lines(run)
    return Curves(
        title=_summary(run, frames),
        axis=one.measured.title,
        names=names,
        updates=[frame["update"] for frame in frames],
        seeds=[
            [list(values) for values in zip(*(s[at] for s in series))]
            for at in range(len(names))
        ],
        reach=one.measured.reach,
        last=UPDATES,
    )


def lines(run: Run) -> tuple[str, ...]:
    """What the run's lines are called, the correct one first."""
    named = tuple(load(run.bug).engine_names)
    return (*named, study(run.bug).third) if run.third else named


def _diverged(run: Run, frames: list[dict]) -> str:
    """How many seeds have no number any more."""
    if not frames:
        return ""
    last = _effect(run, frames[-1])
    if not last.diverged:
        return ""
    if last.diverged == run.seeds:
        return (
            f"All {run.seeds} seeds diverged: their policy is not a number"
            " any more, and their curves end there."
        )
    return (
        f"{last.diverged} of {run.seeds} seeds diverged: their policy is not"
        " a number any more. Their curves end there, and the result is over"
        " the other seeds."
    )


def _summary(run: Run, frames: list[dict]) -> str:
    """The picture in words."""
    if not frames:
        return "No curve yet."
    title = study(run.bug).measured.title
    right, wrong = load(run.bug).engine_names
    first, last = _effect(run, frames[0]), _effect(run, frames[-1])
    said = (
        f"{title[:1].upper()}{title[1:]}, mean of {run.seeds} seeds. Both runs"
        f" start at {_three(first.correct)}. After {_reached(frames)} updates"
        f" the {right} run is at {_three(last.correct)} and the {wrong} run at"
        f" {_three(last.faulty)}"
    )
    if run.third:
        third = _three(_mean_of_third(run, frames[-1]))
        said += f", and with {study(run.bug).third} it is at {third}"
    return f"{said}."


def _mean_of_third(run: Run, frame: dict) -> float:
    """Of the seeds that did not diverge; NaN where none is left."""
    correct, _, third = frame["values"][study(run.bug).measure]
    return effect(correct, third).faulty


def _button(mine: Desk, run: Run, frames: list[dict]) -> None:
    """Stop while the run trains; Start where it is not done."""

    def stop() -> None:
        mine.settle(frames)
        st.rerun()

    def start() -> None:
        mine.start()
        st.rerun()

    if mine.wanted == Task(run):
        st.button("Stop", key="training-stop", on_click=stop)
    elif _reached(frames) < UPDATES:
        st.button("Start", key="training-start", on_click=start)


def below(mine: Desk) -> None:
    """What the finished or stopped run says, one update's batch, and
    files."""
    run = mine.run
    frames = mine.results.get(run, [])
    if len(frames) < 2:
        return
    st.markdown(words.plain(_summary(run, frames)))
    one = study(run.bug)
    _files(run, frames)
    with st.expander("The numbers as a table"):
        _table(run, frames)
    st.markdown(f"**Why:** {words.plain(one.why)}")
    st.markdown(
        f"**How these conditions were found:** {words.plain(one.found)} They"
        " were searched for, to see where the bug hurts; the slider also"
        " shows where it does not. Intervals cover the chance in training"
        " and nothing else."
    )
    one_update.choose(mine, _reached(frames))


def _table(run: Run, frames: list[dict]) -> None:
    one = study(run.bug)
    right, wrong = load(run.bug).engine_names
    body = []
    for frame in frames:
        if frame["update"] % 25:
            continue
        found = _effect(run, frame)
        low = found.difference - found.half_width
        high = found.difference + found.half_width
        numbers: tuple[float, ...]
        numbers = (found.correct, found.faulty, found.difference, low, high)
        if run.third:
            numbers = (*numbers, _mean_of_third(run, frame))
        body.append([str(frame["update"]), *(_three(n) for n in numbers)])
    head = ["updates", right, wrong, "difference", "from", "to"]
    head += ["third line"] if run.third else []
    table(head, body, range(1, len(head)), heads=1, label=one.measured.title)


def _three(value: float) -> str:
    return f"{value:.3f}".replace("-", "−").replace("nan", "no value")


def _dose(mine: Desk) -> None:
    """The difference at every setting tried with this optimizer and this
    number of seeds."""
    run, one = mine.run, study(mine.run.bug)
    update = one.report[0]
    found = {
        tried.value: _reported(tried, frames)[update]
        for tried, frames in mine.results.items()
        if (tried.bug, tried.optimizer, tried.seeds)
        == (run.bug, run.optimizer, run.seeds)
        and _reached(frames) >= update
    }
    points = sorted(found.items())
    right, wrong = load(run.bug).engine_names
    st.subheader("All settings tried", anchor=False)
    picture = Dose(
        title="The difference at each setting tried.",
        axis=f"difference, {one.measured.title}",
        across=one.slider.label,
        points=[(v, e.difference, e.half_width) for v, e in points],
        reach=(one.slider.least, one.slider.most),
        at=run.value,
    )
    show(dose_svg(picture), key="dose")
    st.markdown(
        f"Each setting that you try adds a point: {wrong} minus {right} after"
        f" {update} updates, with its 95 % interval."
    )
    if not points:
        return
    with st.expander("The settings tried as a table"):
        body = [
            [f"{v:g}", _three(e.difference), _three(e.half_width)] for v, e in points
        ]
        head = [one.slider.label, "difference", "± (95 %)"]
        table(head, body, range(3), label="settings tried")


def _files(run: Run, frames: list[dict]) -> None:
    name = f"{run.bug}-{run.value:g}-{run.optimizer}-{run.seeds}-seeds"
    one = study(run.bug)
    title = f"{load(run.bug).title}: {one.slider.said(run.value)}"
    with st.container(horizontal=True):
        download(
            "Picture (SVG)",
            f"{name}.svg",
            lambda: curves_svg(curves(run, frames), title),
        )
        download(
            "Curves (CSV)",
            f"{name}.csv",
            lambda: curves_csv(
                ((f["update"], f["values"]) for f in frames),
                lines(run),
            ),
        )
