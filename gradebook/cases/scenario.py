"""TOML file -> Scenario -> Batch. A file is read whole, or refused with a
GradebookError that has its file, key, row and what is wrong."""

from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import model_validator

from gradebook.bugs import BUGS, Swap, swap, swaps
from gradebook.cases import case as parts
from gradebook.cases import schema
from gradebook.cases.rules import RULES
from gradebook.cases.schema import BugName
from gradebook.cases.status import Tracked
from gradebook.cases.table import Table
from gradebook.core import PROJECT
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import STAGES

FOLDER = PROJECT / "scenarios"
SETTINGS = ("estimator", *Settings().keys())
Control = Annotated[str, schema.one_of(*SETTINGS, "padded_width")]
KINDS = ("shows", "face", "hides")
"""Shows the bug, another face of it, or hides it; in teaching order."""
FROM_MAIN = (
    *("mechanism", "complaint", "status", "sources", "affected", "rule", "controls"),
    *("telltale", "record", "engine_names", "dispute", "kin", "lines", "drag"),
    *("breaks", "reading"),
)
"""What a variant may leave to its bug's main file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Case(schema.FilePart):
    """A batch, and how a page shows it: what a state, a draft, the board and a link
    read of a case.

    focus         the row in question
    controls      the settings that the page has a widget for
    lines         what a line of the board is: a row, or a token; "position" puts the
                  tokens of one position together
    drag          the columns that a handle of the board moves together; the first
                  is drawn on the board's left axis
    token         if lines are tokens, the token in question of the row `focus`
    engine_names  what the two engines are called if "correct" and "faulty" would take a
                  side
    """

    name: str
    title: str
    rows: schema.Rows
    settings: schema.SettingsTable
    focus: schema.Count = 0
    controls: tuple[Control, ...] = ()
    lines: parts.Lines = "row"
    drag: parts.Dragged = ("reward",)
    token: schema.Count = 0
    engine_names: tuple[str, str] = ("correct", "faulty")

    @property
    def bugs(self) -> tuple[str, ...]:
        """The bugs of the faulty engine; without any, both engines are correct."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        self.rows.batch(self.settings)
        schema.check_index("focus", self.focus, len(self.rows), "rows")
        schema.check_index("token", self.token, max(self.rows.width, 1), "tokens")
        for name in self.drag:
            choice(name, self.rows.columns, "drag")


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainCase(Case):
    """A case that no bug's scenario file holds: of the primer, a game or a report."""

    bugs: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Scenario(Tracked, Case):
    """One batch that shows a bug, hides it, or shows another face of it: the keys of
    a scenario file, and its name and path.

    teaser     one sentence that sets the scene, shown before the answer
    mechanism  what the faulty engine does, in one sentence of at most 15 words,
               shown before the question; a variant has its bug's
    claim      one sentence that says what goes wrong, shown after it
    complaint  the report as somebody who saw it in a run would write it, for the
               game "Bug or not?"; a variant has its bug's
    also       bugs that are on together with `bug`: a combination
    breaks     the rule that the bug breaks, by its name in cases/rules.py
    reading    an exercise: which line of code is right?

    Raises GradebookError when parts of it do not fit together.

    >>> scenario = load("partial_groups")
    >>> scenario.bug, scenario.batch().rows
    ('partial_groups', 12)
    """

    path: Path
    bug: BugName
    kind: Annotated[str, schema.one_of(*KINDS)]
    claim: str
    story: str
    lesson: str
    focus: schema.Whole = field()  # without the default that other cases have
    prediction: parts.Prediction
    expected: parts.Expected
    affected: parts.Affected
    rule: str
    controls: Annotated[tuple[Control, ...], schema.between(1)] = field()
    telltale: parts.Telltale
    record: parts.BugRecord
    breaks: Annotated[str, schema.one_of(*RULES)] = ""
    reading: parts.Reading | None = None
    dispute: parts.Dispute | None = None
    kin: tuple[parts.Kin, ...] = ()
    teaser: str = ""
    mechanism: str = ""
    complaint: str = ""
    also: Annotated[tuple[BugName, ...], schema.between(1)] = ()
    plan: schema.Lesson | None = None
    challenges: Annotated[tuple[parts.Challenge, ...], schema.between(1)] = ()

    @model_validator(mode="before")
    @classmethod
    def _with_main(cls, document: dict[str, Any]) -> dict[str, Any]:
        """The file's keys and values; of a variant with those FROM_MAIN."""
        bug, named = document.get("bug", ""), document["name"].partition("-")[0]
        choice(bug, [named] if named in BUGS else BUGS, "bug")
        if document["name"] == bug:
            return document
        main = load(bug)
        from_main = {key: getattr(main, key) for key in FROM_MAIN}
        # An empty text in a file is an error; a bug may break no named rule.
        inherited = {key: value for key, value in from_main.items() if value != ""}
        return inherited | document

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, values, of in (
            ("expected.correct", self.expected.correct, self.rows),
            ("expected.faulty", self.expected.faulty, self.rows),
        ):
            if values and len(values) != len(of):
                raise refuse(f"{len(of)} values", len(values), key)
        swaps(self.bugs)
        if not self.variant and self.plan is None:
            raise GradebookError("Field required", key="plan")
        if self.plan is not None:
            choices = len(self.prediction.choices)
            schema.check_index("plan.usual", self.plan.usual, choices, "choices")
        for place, challenge in enumerate(self.challenges):
            table, settings = self.rows, self.settings
            for step, change in enumerate(challenge.solution):
                try:
                    table, settings = change.applied(table, settings)
                    table.batch(settings)
                except GradebookError as error:
                    key = f"challenges[{place}].solution[{step}].{error.key}"
                    raise error.at(key=key) from None

    @property
    def variant(self) -> bool:
        """The file is not the bug's main one."""
        return self.path.stem != self.bug

    @property
    def bugs(self) -> tuple[str, ...]:
        """The bugs of the faulty engine: `bug`, then those of `also`."""
        return (self.bug, *self.also)

    def table(self) -> "pd.DataFrame":
        """The rows as a data frame to edit: text, and flags as booleans."""
        return pd.DataFrame(self.rows.cells)

    def batch(
        self, table: "pd.DataFrame | None" = None, settings: Settings | None = None
    ) -> Batch:
        """The edited data frame of `table`, or else the file's rows, as a batch, under
        `settings`, by default the file's. Raises GradebookError with column and row.

        >>> rows = load("partial_groups").table()
        >>> rows.loc[10, "reward"] = "7"
        >>> load("partial_groups").batch(rows).reward[8:].tolist()
        [0.0, 1.0, 7.0, 100.0]
        """
        cells = self.rows
        if table is not None:
            typed = table.astype(object).where(table.notna(), None)
            cells = Table.of_columns({n: typed[n].tolist() for n in typed.columns})
        return cells.batch(settings or self.settings)


def load(name_or_path: str | Path) -> Scenario:
    """The scenario `name_or_path`: a name in scenarios/, or the path of a file, which
    is a string with a slash or ending in .toml. Raises GradebookError with file, key,
    row, expected and found.

    >>> load("partial_groups").title
    'Partial groups'
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text:
        return _read(Path(text))
    return _shipped(name_or_path)


def _read(path: Path) -> Scenario:
    return schema.read_part(Scenario, path, name=path.stem, path=path)


@cache
def _shipped(name: str) -> Scenario:
    return _read(FOLDER / f"{choice(name, names(), 'scenario')}.toml")


def names() -> tuple[str, ...]:
    """The shipped scenarios, each bug's main one first."""
    stems = [path.stem for path in FOLDER.glob("*.toml")]
    return tuple(sorted(stems, key=lambda stem: (stem not in BUGS, stem)))


def variants(bug: str) -> tuple[Scenario, ...]:
    """The bug's scenarios: the main one, more that show it, other faces,
    and those that hide it. Raises GradebookError if there is no such bug."""
    choice(bug, BUGS, "bug")
    cases = [load(n) for n in names() if n.partition("-")[0] == bug]
    cases.sort(key=lambda case: (case.variant, KINDS.index(case.kind), case.name))
    return tuple(cases)


@cache
def combinations() -> tuple[Scenario, ...]:
    """The sandbox's cases with bugs that a trainer had at the same time."""
    return tuple(map(_read, sorted(FOLDER.glob("sandbox/*-with_*.toml"))))


@dataclass(frozen=True, eq=False, kw_only=True)
class Bug(Swap, parts.BugRecord, Tracked):
    """A bug: its stage, functions and engine from gradebook/bugs, and from its scenario
    what is known of it, with the settings on its page."""

    controls: tuple[str, ...]


@cache
def bug(name: str) -> Bug:
    """The record of a bug. Raises GradebookError for a name that is not in BUGS, and
    as `load` does for the bug's scenario file.

    >>> "partial_groups" in BUGS
    True
    >>> bug("partial_groups").stage, bug("partial_groups").title
    ('group', 'Partial groups')
    """
    stage, main = swap(name), load(name)
    keys = ("controls", *(field.name for field in fields(Tracked)))
    reported = {key: getattr(main, key) for key in keys}
    return Bug(**vars(stage), **vars(main.record), **reported)


@cache
def by_trainer() -> dict[str, tuple[str, ...]]:
    """The bugs of each trainer that had some, in the alphabet's order."""
    trainers = {name: bug(name).trainers for name in BUGS}
    each = sorted({t for names in trainers.values() for t in names}, key=str.lower)
    return {t: tuple(n for n in BUGS if t in trainers[n]) for t in each}


@cache
def by_stage() -> dict[str, tuple[str, ...]]:
    """The bugs of each stage, in the order of the stages; of some none."""
    return {s: tuple(n for n in BUGS if bug(n).stage == s) for s in STAGES}


@cache
def by_rule() -> dict[str, tuple[str, ...]]:
    """The bugs of each rule, in the order of the rules; "" for those without one."""
    named = {rule: tuple(n for n in BUGS if load(n).breaks == rule) for rule in RULES}
    rest = tuple(n for n in BUGS if not load(n).breaks)
    return named | ({"": rest} if rest else {})


def siblings(bug: str) -> tuple[str, ...]:
    """The other bugs that break the same rule. Raises GradebookError as `load` does."""
    rule = load(bug).breaks
    return tuple(name for name in by_rule()[rule] if name != bug) if rule else ()


SANDBOX = "sandbox"
"""The page, and its blank start; 'sandbox-<scenario>' are the others."""


def starts() -> tuple[str, ...]:
    """The names of the starts, the blank one first."""
    together = (case.name for case in combinations())
    return (SANDBOX, *(f"{SANDBOX}-{name}" for name in (*names(), *together)))


def is_start(name: str) -> bool:
    """The name is one of the sandbox's, whether or not there is such a start."""
    return name.partition("-")[0] == SANDBOX


@cache
def case(name: str) -> Scenario:
    """A start of the sandbox, with every setting a control, or a shipped scenario, by
    its name. Raises GradebookError as `load` does."""
    if not is_start(name):
        return load(name)
    stem = "blank" if name == SANDBOX else name.removeprefix(f"{SANDBOX}-")
    path = FOLDER / SANDBOX / f"{stem}.toml"
    shipped = load(path if path.exists() else stem)
    return replace(shipped, name=name, controls=SETTINGS)


def page_of(case: Case) -> str:
    """The page that shows the case: the sandbox, its bug's, or one of its own name."""
    if is_start(case.name):
        return SANDBOX
    return case.bug if isinstance(case, Scenario) else case.name
