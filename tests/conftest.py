"""A visit to a page without a browser, through Streamlit's AppTest."""

import json
import math
import re
from pathlib import Path

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import gradebook

ROOT = Path(__file__).parent.parent


class Visit:
    """One visitor's session. Every run fails where the page shows a
    traceback."""

    def __init__(self, page=""):
        self.app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        if page:
            # As a deep link does: Home is not drawn first.
            self.app._page_hash = calc_hash(page)
        self.page = page
        self.case = page
        # The questions are skipped, so that both sides show.
        skipped = dict.fromkeys(gradebook.BUGS, -1)
        self.app.session_state["answers"] = skipped
        self.app.session_state["arrived"] = True  # as the browser says it
        self.run()

    def run(self, states=None):
        """The page once more, as after a visitor's act."""
        if states is None:
            self.app.run()
        else:
            self.app._run(states)
        assert [e.value for e in self.app.exception] == []
        return self

    def go(self, page):
        """Another page, through the navigation."""
        self.app._page_hash = calc_hash(page)
        self.page = self.case = page
        return self.run()

    def choose(self, case):
        """Another case of the page."""
        self.case = case
        return self.put(f"case-{self.page}", case)

    def widget(self, key):
        """The widget with this key, of whatever kind."""
        kinds = (
            "button",
            "button_group",
            "checkbox",
            "number_input",
            "selectbox",
            "text_area",
            "text_input",
            "toggle",
        )
        (found,) = [
            widget
            for kind in kinds
            for widget in getattr(self.app, kind)
            if re.fullmatch(
                re.escape(key) + "(__at__[0-9-]+)?", widget.key or ""
            )
        ]
        return found

    def put(self, key, value):
        """A value into a widget."""
        self.widget(key).set_value(value)
        return self.run()

    def open(self, part):
        """Opens a part of the page that is folded."""
        self.app.session_state[f"open-{part}"] = True
        return self.run()

    def press(self, part):
        """One of the case's buttons: add, remove, reset, draw."""
        self.widget(f"{part}-{self.case}").click()
        return self.run()

    def paste(self, block):
        """A block into the Paste form, and its button."""
        key = f"paste-{self.case}"
        self.widget(key).set_value(block)
        self.widget(f"{key}-go").click()
        return self.run()

    def cell(self, row, **values):
        """An edit in the grid, sent as the browser sends it. (AppTest can
        only seed the grid's state, which calls no on_change.)"""
        rows = {str(r): dict(v) for r, v in self.edits.items()}
        rows[str(row)] = rows.get(str(row), {}) | values
        return self.commit(rows)

    def commit(self, rows):
        """All edits that stand in the grid: row -> column -> value."""
        edits = {"edited_rows": rows, "added_rows": [], "deleted_rows": []}
        return self.send(self.app.data_editor[0].proto.id, edits)

    @property
    def edits(self):
        """The edits that the grid lays over what it was given."""
        key = self.app.data_editor[0].proto.id.split("-", 2)[2]
        return self.app.session_state[key]["edited_rows"]

    def send(self, widget, value):
        """A widget's state, as the browser sends it."""
        states = self.app._tree.get_widget_states()
        sent = WidgetState(id=widget, string_value=json.dumps(value))
        states.widgets.append(sent)
        return self.run(states)

    @property
    def grid(self):
        """The table as it is shown, results included."""
        shown = self.app.data_editor[0].value.copy()
        for row, changed in self.edits.items():
            for name, value in changed.items():
                shown.loc[int(row), name] = value
        return shown

    @property
    def table(self):
        """The rows as the visitor left them, column by column."""
        computed = ["row", "in mean", "correct", "faulty"]
        own = self.grid.drop(columns=computed, errors="ignore")
        return {name: cells.tolist() for name, cells in own.items()}

    @property
    def row(self):
        """The selected row."""
        return self.widget(f"row-{self.case}").value

    def setting(self, name):
        """What stands in the widget of a setting."""
        return self.widget(f"set-{name}-{self.case}").value

    @property
    def errors(self):
        """The messages, without Markdown's backslashes."""
        return [e.value.replace("\\", "") for e in self.app.error]

    @property
    def text(self):
        """Everything the page says."""
        kinds = ("title", "header", "subheader", "markdown", "html", "error")
        found = [e.value for k in kinds for e in self.app.get(k)]
        return "\n".join(found).replace("\\", "")

    @property
    def stale(self):
        """The picture is marked as the last good one, in style and words."""
        ids = [getattr(n.proto, "id", "") for n in inside(self.app._tree)]
        styled = any(one.endswith("-stale") for one in ids)
        assert styled == ("Stale" in self.text)
        return styled

    @property
    def pictures(self):
        """The Plotly figures, as the browser gets them."""
        charts = self.app.get("plotly_chart")
        return [json.loads(chart.proto.spec) for chart in charts]

    def marks(self, panel=0, picture=0):
        """[correct, faulty]: the value marked on each row that has one."""
        return [
            dict(trace["customdata"]) for trace in self.traces(panel, picture)
        ]

    def traces(self, panel=0, picture=0):
        """[correct, faulty] traces of Plotly."""
        axis = f"x{panel + 1}" if panel else "x"
        return [
            trace
            for name in ("correct", "faulty")
            for trace in self.pictures[picture]["data"]
            if trace.get("name") == name and trace["xaxis"] == axis
        ]


def inside(block):
    """Every block and element of a block."""
    for node in getattr(block, "children", {}).values():
        yield node
        yield from inside(node)


def values(numbers):
    """{row: value} of the rows that have one, for comparison with marks."""
    kept = {r: v for r, v in enumerate(numbers) if math.isfinite(v)}
    return pytest.approx(kept, rel=1e-6, abs=1e-6)


@pytest.fixture(scope="session")
def visit():
    """Opens a page in a session of its own: `visit("partial_groups")`."""
    return Visit


@pytest.fixture(scope="session")
def both():
    """[correct, faulty] traces of a bug's engines on rows, by the library
    alone: `both("rejected_rows", rows, settings)`."""

    def run(bug, rows, settings):
        columns = {k: [row[k] for row in rows] for k in rows[0]}
        batch = gradebook.Batch(**columns, settings=settings)
        engines = (gradebook.CORRECT, gradebook.bug(bug).engine)
        return [gradebook.run(engine, batch) for engine in engines]

    return run


@pytest.fixture(scope="session")
def marked():
    """Numbers a row, to be compared with one side of a page's marks."""
    return values
