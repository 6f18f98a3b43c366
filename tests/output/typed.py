"""States as a learner leaves them, for what is taken home."""

import csv
import io
import random
from dataclasses import replace

import gradebook
from gradebook.analysis.comparison import compared
from gradebook.cases.state import start
from gradebook.cases.table import LISTS, Table
from gradebook.core.errors import GradebookError
from gradebook.core.settings import CHOICES

LINK = "https://example.org/zero_std_kl?v=1&s=x"
NASTY = [
    'say "hi"',
    "'''",
    '"""',
    "a\\",
    "a\nb",
    "a\r\nb",
    "tab\there",
    "=HYPERLINK(1)",
    "@sum",
    "x;=1+1",
    "\u2028\u202e",
    "\x00\x1b",
    "日本語🎓",
    "\\U0001F600",
    "." * 150,
    "# comment",
    "]]\nassert False",
]


def opened(name, **settings):
    state = start(gradebook.load(name))
    return replace(state, settings=replace(state.settings, **settings))


def labelled(state, labels):
    """The state with other prompt labels, one per row."""
    cells = [labels[row % len(labels)] for row in range(state.rows)]
    return replace(state, table=Table.of_columns({"prompt": cells}, state.table.cells))


SETTINGS = {
    **{name: CHOICES[name] for name in CHOICES if name != "skip_flat"},
    "eps": [0.1, 1e-9, 1e-4],
    "beta": [0.04, 1.0],
    "min_group_size": [1, 2],
    "whiten_tokens": [True, False],
    "accumulation": [1, 4],
    "reward_clip": [None, 1.0, 20.0],
    "reward_bias": [0.0, -1.0, 0.3],
}


def random_cell(chance, table, row, name):
    if type(table[name][row]) is bool:
        return chance.random() < 0.7
    if name == "prompt":
        return chance.choice("ABCD")
    if name == "reward":
        return f"{chance.uniform(-9, 9):.2f}"
    if name in ("extent", "generation"):
        return "0"
    if name in LISTS:
        tokens = (chance.uniform(-3, 0) for _ in range(table.width))
        return " ".join(f"{token:.3f}" for token in tokens)
    return "5" if name == "steps" else str(row % 6)


def edited(seed, bug, rows=14, settings=0):
    """A batch of random rows, under so many other settings, on which the engines
    differ."""
    chance = random.Random(f"{bug} {seed}")
    while True:
        state, cells = opened(bug), {}
        table = state.table.extended(rows)
        for row in range(rows):
            for name in table.headers:
                cells[row, name] = random_cell(chance, table, row, name)
            if cells[row, "prompt"] == "A":
                cells[row, "reward"] = state.table["reward"][0]
        names = chance.sample([*SETTINGS], settings)
        changes = {name: chance.choice(SETTINGS[name]) for name in names}
        new = replace(
            state,
            table=table.with_cells(cells),
            row=chance.randrange(rows),
            settings=replace(state.settings, **changes),
        )
        try:
            if not compared(new).agree:
                return new
        except GradebookError:
            pass


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))
