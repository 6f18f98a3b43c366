"""A visit to a page without a browser, through Streamlit's AppTest."""

import json
import math
import os
import re
import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qsl

# Set before torch is imported: workers that share the machine's cores lose
# time to each other's threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from one_a_stage import BY_STAGE
from streamlit.components.v2 import manifest_scanner
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest, app_test
from streamlit.util import calc_hash

import gradebook
from gradebook.analysis.comparison import push
from gradebook.cases.scenario import names
from gradebook.cases.state import TEXTS
from gradebook.ui.board.component import OPEN, taken
from gradebook.ui.parts.drafts import SKIPPED, Guess, Progress
from gradebook.ui.rooms import seat
from gradebook.ui.server import VISIT

ROOT = Path(__file__).parent.parent
# The same examples in every run; a machine under load is slow, not wrong.
# `-m long` tries each property again, on more examples.
STEADY = {
    "derandomize": True,
    "deadline": None,
    "suppress_health_check": [
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
}
settings.register_profile("short", max_examples=10, **STEADY)
settings.register_profile("long", max_examples=100, **STEADY)
settings.load_profile("short")


def pytest_configure(config):
    # Rooms of tests stay out of the user's data folder; each worker has its own.
    folder = tempfile.TemporaryDirectory()
    config.add_cleanup(folder.cleanup)
    os.environ["GRADEBOOK_DATABASE_URL"] = f"sqlite:///{folder.name}/rooms.db"
    if config.option.markexpr == "long":
        settings.load_profile("long")


def pages_of(app):
    """The registry of pages that a server keeps for the app's session.

    AppTest makes an empty one for each run, in which fragments that run
    alone would find no page to link to.
    """

    class Pages(PagesManager):
        def __init__(self, *args, **more):
            PagesManager.uses_pages_directory = None
            super().__init__(*args, **more)
            self._pages = app._registered_pages or None

    return Pages


# A server looks once for components among the installed packages, AppTest at
# each run, which takes longer than a page.
manifest_scanner.scan_component_manifests = cache(
    manifest_scanner.scan_component_manifests
)

POINTS = re.compile(r'<span class="gb-point"[^>]*>(.*?)</span>', re.DOTALL)
"""A text that points at rows of the board, and what it says."""


class Visit:
    """One visitor's session. Every run fails if the page shows a
    traceback."""

    def __init__(self, page="", state=None, **query):
        self.app = AppTest.from_file(str(VISIT), default_timeout=600)
        if page:
            # As a deep link does: Home is not drawn first.
            self.app._page_hash = calc_hash(page)
        self.page = page
        self.case = page
        # The questions are skipped, so that both sides show.
        skipped = dict.fromkeys(names(), Guess(SKIPPED))
        self.app.session_state["progress"] = Progress(skipped)
        for name, value in (state or {}).items():
            self.app.session_state[name] = value
        for name, value in query.items():
            self.app.query_params[name] = value
        self.unfold()
        self.run()

    def unfold(self):
        for menu in ("settings", "cases"):
            self.app.session_state[f"{menu}-{self.page}"] = True
        for group in ("columns", *{texts["group"] for texts in TEXTS.values()}):
            self.app.session_state[f"open-{group}"] = True

    def run(self, states=None):
        """The page once more, as after a visitor's act."""
        with patch.object(app_test, "PagesManager", pages_of(self.app)):
            if states is None:
                self.app.run()
            else:
                self.app._run(states)
            if not self.app.title and not self.app.exception:
                self.app.run()  # fragments ran alone: the rest is forgotten
        assert [e.value for e in self.app.exception] == []
        for written in self.sent("address"):  # the browser writes its own
            self.write(parse_qsl(written["query"]))
        for data in self.sent("board"):
            if "address" in data:
                own, others = data["address"]
                kept = {k: v for k, v in self.address.items() if k in others}
                self.write([*parse_qsl(own), *kept.items()])
        return self

    def write(self, query):
        self.app.query_params.clear()
        self.app.query_params.update(query)

    def go(self, page):
        self.app._page_hash = calc_hash(page)
        self.page = self.case = page
        self.unfold()
        return self.run()

    def choose(self, case):
        self.case = case
        return self.put(f"case-{self.page}", case)

    def widget(self, key):
        kinds = "button button_group checkbox number_input selectbox text_area"
        (found,) = [
            widget
            for kind in [*kinds.split(), "text_input", "toggle"]
            for widget in getattr(self.app, kind)
            if re.fullmatch(re.escape(key) + "(__at__[0-9-]+)?", widget.key or "")
        ]
        return found

    def put(self, key, value):
        self.widget(key).set_value(value)
        return self.run()

    def click(self, key):
        self.widget(key).click()
        return self.run()

    def end(self, part):
        """Opens one of the four parts at the end of a bug's page."""
        return self.click(f"more-{part}")

    def open(self, part):
        """Opens a part of the page that is folded."""
        self.app.session_state[f"open-{part}"] = True
        return self.run()

    def press(self, part):
        """One of the case's buttons, on the board or beside it."""
        if part in ("undo", "redo", "reset"):
            return self.edit({"do": part})
        if part in ("add", "remove"):
            return self.edit({"do": part, "row": self.row})
        return self.click(f"{part}-{self.case}")

    def paste(self, block):
        return self.edit({"do": "replace", "text": block})

    def cell(self, row, **values):
        """Other cells in a row of the board; a token by its header."""
        edits = []
        for name, value in values.items():
            if re.fullmatch("t[0-9]+", name):
                at = int(name[1:]) - 1
                tokens = {"start": at, "stop": at + 1}
                edits.append({"do": "mask", "row": row, **tokens})
            else:
                edits.append({"do": "cell", "row": row, "column": name})
            edits[-1]["value"] = value
        return self.edit(*edits)

    def select(self, row):
        return self.edit({"do": "select", "row": row})

    def edit(self, *edits):
        """Edits of the board, in one message, as the browser sends it; then the
        page follows, as when the edit is finished."""
        data = self.board
        first = data["ack"] + 1
        numbered = [{"n": first + i, **e} for i, e in enumerate(edits)]
        message = {"epoch": data["epoch"], "edits": numbered}
        taken(OPEN[data["epoch"]], message)
        return self.run()

    def answer(self, choice):
        """The answer to the board's question, as the browser sends it."""
        message = {"epoch": self.board["epoch"], "choice": choice}
        event = [{"event": "answered", "value": message}]
        programs = self.app.get("bidi_component")
        (base,) = (p.proto.id for p in programs if "board" in p.proto.component_name)
        states = self.app._tree.get_widget_states()
        sent = WidgetState(id=f"$$STREAMLIT_INTERNAL_KEY_{base}__events")
        sent.json_trigger_value = json.dumps(event)
        states.widgets.append(sent)
        return self.run(states)

    def sent(self, program):
        """What each of the page's programs of this kind is given."""
        return [
            json.loads(element.proto.json)[0]
            for element in self.app.get("bidi_component")
            if element.proto.component_name == f"gradebook_{program}"
        ]

    @property
    def board(self):
        return self.sent("board")[0]

    @property
    def table(self):
        """The rows as the visitor left them, column by column."""
        data, found = self.board, {}
        for at, (name, _, kind, _) in enumerate(data["columns"]):
            cells = [row[at] for row in data["rows"]]
            if kind == "tokens":
                for t in range(data["tokens"]):
                    found[f"t{t + 1}"] = [bits[t] == "1" for bits in cells]
            elif kind == "list":
                found[name] = [data["lists"].get(name)]
            else:
                found[name] = cells
        return found

    @property
    def row(self):
        return self.board["row"]

    def setting(self, name):
        return self.widget(f"set-{name}-{self.case}").value

    @property
    def errors(self):
        """The messages, without Markdown's backslashes."""
        said = [e.value.replace("\\", "") for e in self.app.error]
        for data in self.sent("board"):
            said += [*data["notes"], *filter(None, [data["stale"]])]
        return said

    @property
    def text(self):
        kinds = ("title", "header", "subheader", "markdown", "html", "error", "warning")
        found = [e.value for k in kinds for e in self.app.get(k)]
        found = [text for text in found if not text.startswith("<style>")]
        for data in self.sent("board"):
            found += [data["summary"], data.get("formula", "")]
        found += [data["counts"] for data in self.sent("room_news")]
        found += self.sent("markup")
        text = "\n".join(found).replace("\\", "")
        return POINTS.sub(r"\1", text)

    @property
    def stale(self):
        """The board's marks are called the last good ones."""
        return bool(self.board["stale"])

    @property
    def buttons(self):
        return {button.key for button in self.app.button}

    @property
    def address(self):
        return {k: "".join(v) for k, v in self.app.query_params.items()}

    @property
    def pictures(self):
        """The Plotly figures, as the browser gets them."""
        charts = self.app.get("plotly_chart")
        return [json.loads(chart.proto.spec) for chart in charts]

    def marks(self, panel=0):
        """[correct, faulty]: the value marked on each row that has one; if lines are
        tokens, the sum of the row's marks."""
        sides = self.board["panels"][panel]["engines"]
        if "lines" in self.board:
            return [self._summed(values) for values in sides]
        return [
            {r: v for r, v in enumerate(values) if v is not None} for values in sides
        ]

    def _summed(self, values):
        sums = {}
        for (row, first, last, *_), value in zip(self.board["lines"], values):
            if value is not None:
                sums[row] = sums.get(row, 0) + value * (last - first + 1)
        return dict(sorted(sums.items()))


@pytest.fixture(autouse=True)
def main_module():
    """AppTest leaves its script as `__main__`, and a process that is spawned later
    would run that script."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def visit():
    """Opens a page in a session of its own: `visit("partial_groups")`, with
    `state` of the session and parameters of the address where they are
    given."""
    return Visit


@pytest.fixture(scope="session")
def numbers():
    """What the board of a case has to draw, by the library alone: [correct, faulty]
    for each panel, a number per row. `numbers("rejected_rows", eps=0.5)`"""

    def run(case, **settings):
        scenario = gradebook.load(case)
        settings = replace(scenario.settings, **settings)
        columns = scenario.rows.values()
        batch = gradebook.Batch(**columns, settings=settings)
        engines = (gradebook.CORRECT, gradebook.bug(scenario.bug).engine)
        traces = [gradebook.run(engine, batch) for engine in engines]
        if scenario.lines != "row":
            return [[push(batch, trace).sum(-1).tolist() for trace in traces]]
        if scenario.telltale.kind != "gradient":
            return [[trace.advantage.tolist() for trace in traces]]
        parts = ["policy_gradient", *["kl_gradient"] * ("ref_logp" in columns)]
        return [[getattr(t, part).sum(-1).tolist() for t in traces] for part in parts]

    return run


@pytest.fixture(scope="session")
def marked():
    """{row: value} of the rows that have one, to compare with a page's marks."""

    def values(numbers):
        kept = {r: v for r, v in enumerate(numbers) if math.isfinite(v)}
        return pytest.approx(kept, rel=1e-6, abs=1e-6)

    return values


@pytest.fixture
def room(monkeypatch):
    """The code of a room that the seat "the-lead" leads; no read is shared."""
    monkeypatch.setattr("gradebook.classroom.room.SHARED", 0)
    rooms = seat.rooms()
    code = rooms.open("the-lead")
    yield code
    if rooms.read(code):
        rooms.close(code, "the-lead")


def pytest_xdist_auto_num_workers():
    """One more than cores: a test in a browser mostly waits."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config, items):
    """Marks as long what repeats a test for one more bug of a stage, for one
    more case of a bug's page, or on more examples."""
    variants = set(names()) - set(gradebook.BUGS)
    others = set(gradebook.BUGS) - set(BY_STAGE.values())
    for item in items:
        if config.option.markexpr == "long" and (
            is_hypothesis_test(getattr(item, "obj", None))
        ):
            item.add_marker(pytest.mark.long)
        room = item.path.relative_to(ROOT / "tests").parts[0]
        if room in ("bugs", "engine"):  # for every bug, long or not
            continue
        values = getattr(item, "callspec", None)
        named = (
            [v for v in values.params.values() if isinstance(v, str)] if values else []
        )
        if room in ("output", "ui") and variants & set(named):
            item.add_marker(pytest.mark.long)
        if any(v.removeprefix("sandbox-").split("-")[0] in others for v in named):
            item.add_marker(pytest.mark.long)
