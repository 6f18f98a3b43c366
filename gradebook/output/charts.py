"""Plotly's charts, which open on demand: training curves, influence maps, a log
by steps. A figure is a dict of data and layout, as plotly.js takes it."""

import math
from collections.abc import Sequence
from itertools import groupby, product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from plotly.basedatatypes import BaseFigure

from gradebook.analysis.comparison import Influences
from gradebook.core.formatting import DUST, settled, signed
from gradebook.core.tolerance import EXACT
from gradebook.output.panels import symlog
from gradebook.training.environments import Measure
from gradebook.training.study import Slider

if TYPE_CHECKING:
    import pandas as pd

CORRECT, FAULTY = "#0072B2", "#D55E00"
INK = {"light": "#4A4A4A", "dark": "#D0D0D0"}
"""The colour of a chart's text, by theme; Streamlit's own is too pale."""
GREY, PALE = "rgba(128,128,128,0.75)", "rgba(128,128,128,0.15)"
ABOVE: dict[str, Any] = {"x": 0, "y": 1, "yanchor": "bottom"}

PlotlyFigure = dict[str, Any]
SeedValues = Sequence[Sequence[Sequence[float]]]
"""Of a measure, [updates][E][S]; NaN for a seed that diverged."""


class Ready(BaseFigure):
    """A figure in the style of all charts, under a theme. Plotly takes it as it is:
    its check takes longer than all else on a page. The tests check instead."""

    def __init__(self, figure: PlotlyFigure, theme: str = "light") -> None:
        axis = {"gridcolor": PALE, "zeroline": False, "ticklabelstandoff": 6}
        ink, paper = INK.get(theme, INK["light"]), "rgba(0,0,0,0)"
        style = {
            "clickmode": "event+select",
            "hovermode": "closest",
            "dragmode": False,
            "font": {"family": '"Source Sans", sans-serif', "size": 12, "color": ink},
            "colorway": [ink],
            "hoverlabel": {
                "align": "left",
                "bgcolor": "#242320" if theme == "dark" else "#FFFFFF",
                "bordercolor": GREY,
            },
            "plot_bgcolor": paper,
            "paper_bgcolor": paper,
            "xaxis": axis,
            "yaxis": axis,
        }
        layout = figure["layout"] | {"template": {"layout": style}}
        self._ready = figure | {"layout": layout}

    def to_dict(self) -> PlotlyFigure:
        return self._ready


# Heights, margins and gaps are pixels, by eye: the left margin holds numbers of six
# characters and a title that stands upright, the lower one numbers and a title, the
# upper one a line of the legend. Plotly does not widen them, so a plot keeps its place
# when its numbers change.


def charted(data: list[PlotlyFigure], height: int, **layout: Any) -> PlotlyFigure:
    """A figure of this height in pixels."""
    margin = {"l": 64, "r": 12, "t": 34, "b": 52, "autoexpand": False}
    return {"data": data, "layout": {"height": height, "margin": margin} | layout}


def titled(title: str, **more: Any) -> PlotlyFigure:
    return {"title": {"text": title, "standoff": 9}, **more}


def scatter(mode: str, x: Sequence[Any], y: Sequence[Any], **more: Any) -> PlotlyFigure:
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **more}


def evenly(count: int, most: int) -> list[int]:
    """At most so many of `count` places, evenly from the first one on, for ticks whose
    texts do not overlap."""
    return list(range(0, count, max(1, math.ceil(count / most))))


# Training runs: the curves, and the effect by setting

FRAMES = 20
"""Pictures from the start to the end of a run that plays: at 60 ms each it takes 1.2 s,
long enough to follow two curves."""
PACE = {"frame": {"duration": 60, "redraw": False}, "transition": {"duration": 0}}
PLAY: PlotlyFigure = ABOVE | {
    "type": "buttons",
    "x": 1,
    "xanchor": "right",
    "showactive": False,
    "buttons": [{"label": "Play", "method": "animate", "args": [None, PACE]}],
}


def curves_figure(
    updates: Sequence[int], seeds: SeedValues, names: Sequence[str], measured: Measure
) -> PlotlyFigure:
    """Thin lines for seeds, thick ones for their means, with a button that plays the
    run."""
    every = max(1, (len(updates) - 1) // FRAMES)
    stops = [*range(every + 1, len(updates), every), len(updates)]
    figure = charted(
        _curves(updates, seeds, names),
        height=330,
        hovermode="x",
        legend=ABOVE | {"orientation": "h"},
        xaxis=titled("updates", range=[0, updates[-1]]),
        yaxis=titled(measured.title, range=_room(measured.reach)),
        updatemenus=[PLAY],
    )
    frames = [_curves(updates[:stop], seeds[:stop], names) for stop in stops]
    return figure | {"frames": [{"data": data} for data in frames]}


def _curves(
    updates: Sequence[int], seeds: SeedValues, names: Sequence[str]
) -> list[PlotlyFigure]:
    styles = ((CORRECT, "solid", "circle"), (FAULTY, "dash", "diamond-open"))
    traces: list[PlotlyFigure] = []
    for engine, (name, (colour, dash, symbol)) in enumerate(zip(names, styles)):
        values = [frame[engine] for frame in seeds]
        finite = [list(filter(math.isfinite, frame)) for frame in values]
        thin = scatter(
            "lines",
            [x for _ in values[0] for x in (*updates, None)],
            [y for seed in zip(*values) for y in (*map(_number, seed), None)],
            line={"color": colour, "width": 0.7},
            opacity=0.35,
            hoverinfo="skip",
            showlegend=False,
        )
        thick = scatter(
            "lines+markers",
            list(updates),
            [_number(fmean(left)) if left else None for left in finite],
            name=name,
            line={"color": colour, "width": 3, "dash": dash},
            marker={"symbol": symbol, "size": 9, "maxdisplayed": 9},
            hovertemplate="%{y:.3f}",
        )
        traces += [thin, thick]
    return traces


def dose_figure(
    points: Sequence[tuple[float, float, float]],
    slider: Slider,
    setting: float,
    axis: str,
) -> PlotlyFigure:
    """The paired difference at each setting that was trained, with its 95 % interval:
    (setting, difference, half-width); `setting` is the filled one."""
    points = sorted(point for point in points if math.isfinite(point[1]))
    values = [value for value, _, _ in points]
    # The slider's stops are rounded to six decimals (Slider.values).
    current = [math.isclose(value, setting, abs_tol=EXACT) for value in values]
    halves = [half if math.isfinite(half) else 0 for _, _, half in points]
    symbols = ["circle" if now else "circle-open" for now in current]
    trace = scatter(
        "markers",
        values,
        [size for _, size, _ in points],
        error_y={"type": "data", "array": halves},
        marker={"size": 11, "symbol": symbols},
        hovertemplate="%{x:g}: %{y:+.3f}<extra></extra>",
    )
    return charted(
        [trace],
        height=330,
        xaxis=titled(slider.label, range=_room((slider.least, slider.most))),
        yaxis=titled(axis, rangemode="tozero", zeroline=True, zerolinecolor=GREY),
    )


def _room(reach: tuple[float, float]) -> list[float]:
    # On the 244 pixels of a plot's height, 7: half a mark at the end is not cut off.
    margin = 0.03 * (reach[1] - reach[0])
    return [reach[0] - margin, reach[1] + margin]


def _number(value: float) -> float | None:
    """To four decimals, finer than a pixel, so that a page has less to send."""
    return round(value, 4) if math.isfinite(value) else None


# Who moves whom: the influence maps of both engines, side by side


def map_figure(
    maps: Influences,
    prompts: Sequence[str],
    names: tuple[str, str] = ("correct", "faulty"),
) -> PlotlyFigure:
    """Both maps side by side: a cell's shade is the root of its size's share, with a
    sign if there is room."""
    count = len(prompts)
    # A map has 380 pixels. A cell below 8 is hard to hit; one above 30 tells no more.
    cell = max(8, min(30, 380 // max(count, 1)))
    moves = torch.stack([maps.correct, maps.faulty])
    moves = moves.where(~(moves.abs() <= DUST), 0)
    largest = moves.abs().nan_to_num(0, 0).max().clamp(min=DUST)
    shades = (moves.abs() / largest).clamp(max=1).sqrt() * moves.sign()
    blocks = [[*rows] for _, rows in groupby(range(count), prompts.__getitem__)]
    ticks = evenly(count, 16)
    rows = {"tickvals": ticks, "showgrid": False, "fixedrange": True}
    data, axes, shapes = [], {}, []
    for column, (name, across) in enumerate(zip(names, ("x", "x2"))):
        leaks = maps.leaked.nonzero().tolist() if column else []
        shapes += [_frame(across, [i], [j], FAULTY, 3) for i, j in leaks]
        for down, right in product(blocks, repeat=2):
            if prompts[down[0]] == prompts[right[0]]:
                shapes.append(_frame(across, down, right, GREY, 1.5))
        axes[f"xaxis{across[1:]}"] = titled(
            f"<b>{name}</b>: row that moves it",
            side="top",
            range=[-0.5, count - 0.5],
            domain=[0.52 * column, 0.48 + 0.52 * column],
            anchor="y",
            **rows,
        )
        texts = [[signed(move) for move in line] for line in moves[column].tolist()]
        for i, j in leaks:
            texts[i][j] += "<br>a leak"
        heatmap = {
            "type": "heatmap",
            "name": name,
            "xaxis": across,
            "z": shades[column].tolist(),
            "zmin": -1,
            "zmax": 1,
            "colorscale": [[0, GREY], [0.5, "rgba(128,128,128,0)"], [1, GREY]],
            "showscale": False,
            "xgap": 2,
            "ygap": 2,
            "text": [[t[0] if t[0] in "+−" else "" for t in line] for line in texts],
            # A letter is 12 pixels high, and a cell has a gap of 2 around it.
            "texttemplate": "%{text}" if cell >= 16 else "",
            "customdata": texts,
            "hovertemplate": "row %{x} moves row %{y} by %{customdata}<extra></extra>",
        }
        data.append(heatmap)
    return charted(
        data,
        height=cell * count + 68,
        margin={"l": 44, "r": 8, "t": 60, "b": 8, "autoexpand": False},
        shapes=shapes,
        yaxis=titled("moved row", range=[count - 0.5, -0.5], **rows),
        **axes,
    )


def _frame(
    axis: str, y: Sequence[int], x: Sequence[int], colour: str, width: float
) -> PlotlyFigure:
    ends = {"x0": x[0] - 0.5, "x1": x[-1] + 0.5, "y0": y[0] - 0.5, "y1": y[-1] + 0.5}
    line = {"color": colour, "width": width}
    return {"type": "rect", "xref": axis, "yref": "y", "line": line, **ends}


# Which prompts teach: a bar for each step

KINDS_OF_PROMPTS = {
    "wrong": ("lowest reward", "rgba(90,90,90,0.9)", ""),
    "teach": ("these teach", "rgba(128,128,128,0)", ""),
    "same": ("equal, between", "rgba(128,128,128,0.35)", "/"),
    "right": ("highest reward", "rgba(128,128,128,0.25)", "."),
}
"""Column of a signal's steps -> its words, its shade and its pattern. In ink alone:
whether a prompt teaches is no verdict."""
MOST_BARS = 120
"""More steps than these are put together: on a plot of 600 pixels a bar is then 5 wide,
one tile of its pattern; a narrower one would not show what it is."""


def signal_figure(steps: "pd.DataFrame", few_from: int | None = None) -> PlotlyFigure:
    """A bar for each step: the shares of its prompts whose rewards are all the lowest,
    differ, or are all the highest. `steps` has a line for each step: step, prompts,
    wrong, same, right and teach, as `Signal.steps`; from the line `few_from` on, few
    teach."""
    every = -(-len(steps) // MOST_BARS)
    names = [*KINDS_OF_PROMPTS]
    sums = steps[names].groupby([i // every for i in range(len(steps))]).sum()
    total = sums.sum(axis=1).clip(lower=1)
    labels = list(map(str, steps["step"]))[::every]
    x = list(range(len(labels)))
    data = []
    for name, (words, shade, pattern) in KINDS_OF_PROMPTS.items():
        counts = sums[name].tolist()
        if not any(counts) and name != "teach":
            continue
        hover = [
            f"from step {label}: {count} of {of} prompts<br>{words}"
            if every > 1
            else f"step {label}: {count} of {of} prompts<br>{words}"
            for label, count, of in zip(labels, counts, sums.sum(axis=1))
        ]
        data.append(
            {
                "type": "bar",
                "name": words,
                "x": x,
                "y": (sums[name] / total).tolist(),
                "marker": {
                    "color": shade,
                    "pattern": {"shape": pattern, "size": 5, "fgcolor": GREY},
                    "line": {"color": GREY, "width": 0.5},
                },
                "hovertext": hover,
                "hoverinfo": "text",
            }
        )
    shown = evenly(len(labels), 8)
    line = [] if few_from is None else [few_from // every - 0.5]
    return charted(
        data,
        height=262,
        barmode="stack",
        bargap=0.05,
        margin={"l": 44, "r": 8, "t": 56, "b": 44, "autoexpand": False},
        legend=ABOVE | {"orientation": "h", "traceorder": "normal"},
        xaxis=titled(
            "step", tickvals=shown, ticktext=[labels[i] for i in shown], showgrid=False
        ),
        yaxis={"range": [0, 1.0], "tickvals": [0, 0.5, 1], "tickformat": ".0%"},
        shapes=[
            {
                "type": "line",
                "x0": at,
                "x1": at,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": GREY, "width": 3},
            }
            for at in line
        ],
    )


# A log step by step: each step's verdict and how far it is off

VERDICTS = {
    "correct": ("circle", CORRECT),
    "matches": ("circle", CORRECT),
    "other": ("diamond", FAULTY),
    "suspect": ("diamond-open", FAULTY),
    "asks": ("square-open", "gray"),
    "none fits": ("x", "gray"),
    "cannot tell": ("line-ew-open", "gray"),
}
"""Symbol and colour of a step's verdict. The shape alone is enough to tell them
apart."""


def timeline_figure(frame: "pd.DataFrame", coloured: bool = True) -> PlotlyFigure:
    """One mark per step, on a symlog axis. `frame` has a line for each step: step,
    verdict, correct_residual (the largest difference from the correct numbers) and
    flips. Marks follow the order of the lines."""
    frame = frame.reset_index(drop=True)
    distances = frame["correct_residual"].fillna(0).tolist()
    labels = list(map(str, frame["step"]))
    hover = [
        f"step {label}: {verdict}<br>off by {signed(distance)}, {flips} flips"
        for label, verdict, distance, flips in zip(
            labels, frame["verdict"], distances, frame["flips"]
        )
    ]
    data = []
    for verdict, (symbol, colour) in VERDICTS.items():
        places = frame.index[frame["verdict"] == verdict].tolist()
        marks = scatter(
            "markers",
            places,
            [symlog(settled(distances[i])) for i in places],
            name=verdict,
            marker={
                "symbol": symbol,
                "color": colour if coloured else "gray",
                "size": 9,
                "line": {"width": 1.5},
            },
            cliponaxis=False,
            hovertext=[hover[i] for i in places],
            hoverinfo="text",
        )
        data += [marks] if places else []
    shown = evenly(len(labels), 12)
    largest = max([v for v in distances if math.isfinite(v)] + [0.0])
    top = math.ceil(math.log10(max(largest, 1.0)))
    powers = [10.0**k for k in range(0, top + 1, max(1, math.ceil(top / 3)))]
    return charted(
        data,
        height=260,
        legend=ABOVE | {"orientation": "h"},
        xaxis=titled(
            "step",
            showgrid=False,
            tickvals=shown,
            ticktext=[labels[i] for i in shown],
        ),
        yaxis=titled(
            "largest difference",
            tickvals=[0.0, *map(symlog, powers)],
            ticktext=["0", *(f"{power:g}" for power in powers)],
            # So that no mark is cut off, and none touches the legend.
            range=[-0.2, symlog(largest) * 1.15 + 0.2],
        ),
    )
