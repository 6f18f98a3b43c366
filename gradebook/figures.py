"""Numbers to Plotly figures. Lists in, figures out: no torch, no Streamlit.

Rows run from top to bottom at ROW_HEIGHT pixels, so that a figure stands
beside the table, row for row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from gradebook.numerals import digits_apart, settled, signed

CORRECT = "#0072B2"
FAULTY = "#D55E00"
GREY = "rgba(128,128,128,0.75)"
BAND = "rgba(128,128,128,0.10)"
ROW_HEIGHT = 30
HEADER = 35
CARD_HEIGHT = 210
SQUASHED = 30.0
"""Beyond this ratio of largest to typical value a linear axis hides rows."""


@dataclass(frozen=True)
class Panel:
    """One quantity per row, both engines. NaN has no mark.

    ranges: per row the (low, high) that the faulty value takes over draws.
    """

    title: str
    correct: Sequence[float]
    faulty: Sequence[float]
    flips: Sequence[bool] = ()
    ranges: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class RowPicture:
    """What a picture of rows shows: panels side by side over one set of
    rows, the rows' prompts as bands, the selected row."""

    panels: Sequence[Panel]
    prompts: Sequence[str]
    selected: int = -1
    symlog: bool = False
    names: tuple[str, str] = ("correct", "faulty")
    steps: Sequence[int] = field(default=())


def rows_figure(picture: RowPicture) -> go.Figure:
    """Filled circle (correct) and open diamond (faulty) on each row, over
    a zero line; a flipped row has a thick connector and the word FLIP."""
    count = len(picture.prompts)
    figure = make_subplots(
        rows=1,
        cols=len(picture.panels),
        shared_yaxes=True,
        horizontal_spacing=0.04,
    )
    for column, panel in enumerate(picture.panels, 1):
        _draw(figure, panel, picture, column)
    _bands(figure, picture)
    figure.update_yaxes(
        range=[count - 0.5, -0.5],
        tickmode="array",
        tickvals=list(range(count)),
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    figure.update_yaxes(
        ticktext=[
            f"<b>{r} ▸</b>" if r == picture.selected else str(r)
            for r in range(count)
        ],
        col=1,
    )
    figure.update_layout(
        height=HEADER + ROW_HEIGHT * max(count, 1) + 58,
        margin={
            "l": 34,
            "r": 12,
            "t": HEADER,
            "b": 58,
            "autoexpand": False,
        },
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1,
            "yanchor": "bottom",
            "font": {"size": 13},
        },
        hoverlabel={"align": "left"},
        dragmode=False,
        plot_bgcolor="rgba(0,0,0,0)",
        paper_bgcolor="rgba(0,0,0,0)",
    )
    return figure


def card_figure(picture: RowPicture) -> go.Figure:
    """The last panel small, without row numbers, for a card."""
    figure = rows_figure(replace(picture, panels=picture.panels[-1:]))
    figure.update_layout(
        height=CARD_HEIGHT,
        margin={"l": 4, "r": 4, "t": 6, "b": 40, "autoexpand": False},
        showlegend=False,
    )
    figure.update_yaxes(showticklabels=False)
    figure.update_xaxes(title_standoff=4, title_font_size=12, nticks=5)
    return figure


def squashes(panels: Sequence[Panel]) -> int | None:
    """The row that makes all others unreadable on a linear axis, or None."""
    for panel in panels:
        sizes = [
            (abs(v), row)
            for values in (panel.correct, panel.faulty)
            for row, v in enumerate(values)
            if math.isfinite(v) and settled(v)
        ]
        if len(sizes) < 3:
            continue
        sizes.sort()
        if sizes[-1][0] > SQUASHED * sizes[len(sizes) // 2][0]:
            return sizes[-1][1]
    return None


def symlog(value: float) -> float:
    """Linear near 0, logarithmic beyond 1, odd: keeps sign and order."""
    if not math.isfinite(value):
        return value
    return math.copysign(math.log10(1 + abs(value)), value)


def _draw(
    figure: go.Figure, panel: Panel, picture: RowPicture, column: int
) -> None:
    axis = symlog if picture.symlog else float
    rows = range(len(picture.prompts))
    texts = [_hover(panel, picture, r) for r in rows]
    for row, (low, high) in enumerate(panel.ranges):
        if math.isfinite(low) and math.isfinite(high):
            _segment(figure, axis(low), axis(high), row, column, 9, BAND_LINE)
    flips = list(panel.flips) or [False] * len(rows)
    for row in rows:
        a, b = panel.correct[row], panel.faulty[row]
        if not (math.isfinite(a) and math.isfinite(b)):
            continue
        apart = abs(a - b) > 1e-6 * max(1.0, abs(a), abs(b))
        if apart:
            width, colour = (5, FAULTY) if flips[row] else (2, GREY)
            _segment(figure, axis(a), axis(b), row, column, width, colour)
    marks = (
        (picture.names[0], panel.correct, "circle", CORRECT, 11),
        (picture.names[1], panel.faulty, "diamond-open", FAULTY, 13),
    )
    for name, values, symbol, colour, size in marks:
        seen = [r for r in rows if math.isfinite(values[r])]
        figure.add_trace(
            go.Scatter(
                x=[axis(settled(values[r])) for r in seen],
                y=seen,
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=column == 1,
                marker={
                    "symbol": symbol,
                    "color": colour,
                    "size": size,
                    "line": {"width": 2.5, "color": colour},
                },
                customdata=[[r, values[r]] for r in seen],
                hovertext=[texts[r] for r in seen],
                hoverinfo="text",
            ),
            row=1,
            col=column,
        )
    _words(figure, panel, picture, flips, column)
    figure.add_vline(x=0, line={"color": GREY, "width": 1.5}, col=column)
    reach = _reach(panel, axis)
    figure.update_xaxes(
        title={"text": panel.title, "font": {"size": 13}, "standoff": 14},
        range=reach,
        zeroline=False,
        gridcolor="rgba(128,128,128,0.2)",
        col=column,
        **(_ticks(panel) if picture.symlog else {}),
    )


BAND_LINE = "rgba(213,94,0,0.28)"


def _segment(
    figure: go.Figure,
    start: float,
    end: float,
    row: int,
    column: int,
    width: int,
    colour: str,
) -> None:
    figure.add_trace(
        go.Scatter(
            x=[start, end],
            y=[row, row],
            mode="lines",
            line={"width": width, "color": colour},
            hoverinfo="skip",
            showlegend=False,
        ),
        row=1,
        col=column,
    )


def _words(
    figure: go.Figure,
    panel: Panel,
    picture: RowPicture,
    flips: Sequence[bool],
    column: int,
) -> None:
    """FLIP beside a flipped row; what has no mark is named in words."""
    axis = symlog if picture.symlog else float
    for row in range(len(picture.prompts)):
        a, b = panel.correct[row], panel.faulty[row]
        if flips[row]:
            right = max(axis(a), axis(b))
            _word(figure, "<b>FLIP</b>", right, row, column, FAULTY)
        elif math.isinf(b):
            _word(figure, f"faulty {signed(b)}", 0, row, column, FAULTY)
        elif math.isnan(a) and math.isnan(b):
            _word(figure, "no value", 0, row, column, "gray")
        elif math.isnan(b):
            _word(figure, "faulty: no value", 0, row, column, FAULTY)


def _word(
    figure: go.Figure, text: str, x: float, row: int, column: int, colour: str
) -> None:
    figure.add_annotation(
        text=text,
        x=x,
        y=row,
        xshift=12,
        xanchor="left",
        showarrow=False,
        font={"size": 12, "color": colour},
        row=1,
        col=column,
    )


def _reach(panel: Panel, axis: object) -> list[float]:
    ends = [e for pair in panel.ranges for e in pair]
    values = [*panel.correct, *panel.faulty, *ends, 0.0]
    seen = [axis(v) for v in values if math.isfinite(v)]  # type: ignore
    low, high = min(seen), max(seen)
    if high - low < 1e-6:
        low, high = low - 1, high + 1
    room = (high - low) * 0.08
    flipped = any(panel.flips)
    return [low - room, high + room * (2.2 if flipped else 1)]


def _ticks(panel: Panel) -> dict[str, object]:
    """Ticks of a symlog axis: 0 and powers of ten on both sides."""
    values = [*panel.correct, *panel.faulty]
    largest = max([abs(v) for v in values if math.isfinite(v)] + [1.0])
    top = math.ceil(math.log10(largest))
    every = max(1, math.ceil(top / 3))
    powers = [10.0**k for k in range(0, top + 1, every)]
    ticks = [-p for p in reversed(powers)] + [0.0] + powers
    return {
        "tickmode": "array",
        "tickvals": [symlog(t) for t in ticks],
        "ticktext": [f"{t:g}".replace("-", "−") for t in ticks],
    }


def _bands(figure: go.Figure, picture: RowPicture) -> None:
    """Every second run of rows of one prompt is shaded."""
    shaded = False
    start = 0
    prompts = list(picture.prompts)
    for row in range(1, len(prompts) + 1):
        if row < len(prompts) and prompts[row] == prompts[start]:
            continue
        if shaded:
            figure.add_shape(
                type="rect",
                xref="paper",
                x0=0,
                x1=1,
                yref="y",
                y0=start - 0.5,
                y1=row - 0.5,
                fillcolor=BAND,
                line_width=0,
                layer="below",
            )
        shaded = not shaded
        start = row


def _hover(panel: Panel, picture: RowPicture, row: int) -> str:
    a, b = panel.correct[row], panel.faulty[row]
    digits = digits_apart(a, b)
    prompt = str(picture.prompts[row]).replace("<", "&lt;")
    lines = [
        f"row {row}, prompt {prompt}",
        f"{picture.names[0]} {signed(settled(a), digits)}",
        f"{picture.names[1]} {signed(settled(b), digits)}",
    ]
    if panel.ranges and math.isfinite(panel.ranges[row][0]):
        low, high = panel.ranges[row]
        lines.append(f"over the draws {signed(low)} to {signed(high)}")
    return "<br>".join(lines)
