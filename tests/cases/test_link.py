"""A link is the whole truth: it gives back the state, and names what it
does not understand."""

import base64
import json
import random
import string
import tracemalloc
import zlib
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest

import gradebook
from gradebook.cases import edits, link
from gradebook.cases.packed_table import pack
from gradebook.cases.sandbox import case, starts
from gradebook.cases.scenario import names
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.core.settings import CHOICES, FLAGS
from gradebook.engine.trainer import NORMALIZATIONS

TEXTS = [
    *("", " ", "0", "-1", "1e400", "1,5", "nan", "½", "−2", "NaN", "null"),
    *("naïve", "日本語", "🎓👩‍🏫", 'say "hi"', "it's", "a\nb", "a\tb", "\\"),
    *("=1+1", "a&b=c#d?e%20f+g", "\x00", "\u202eabc", "]]}", "'''", "~"),
]


def packed(value):
    """`t` of a link, made by hand."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(zlib.compress(raw)).decode().rstrip("=")


def anything(chance):
    if chance.random() < 0.6:
        return chance.choice(TEXTS)
    letters = string.printable + "äß€😀"
    return "".join(chance.choices(letters, k=chance.randrange(12)))


def edit_cell(state, chance):
    if not state.rows:
        return state
    row = chance.randrange(state.rows)
    name = chance.choice(state.table.headers)
    now = state.table[name][row]
    cell = not now if isinstance(now, bool) else anything(chance)
    return edits.set_cell(state, row, name, cell)


def paste_flag(state, chance):
    """A flag that cannot be read stays as typed."""
    names = [n for n in state.table.headers if n == "eos" or n[1:].isdigit()]
    if not state.rows or not names:
        return state
    row, name = chance.randrange(state.rows), chance.choice(names)
    return edits.set_cell(state, row, name, chance.choice(["", "maybe", "½"]))


def empty_cell(state, chance):
    if not state.rows:
        return state
    return edits.set_cell(state, chance.randrange(state.rows), "reward", "")


def add_row(state, chance):
    return edits.add_row(state, chance.randrange(max(state.rows, 1)))


def remove_row(state, chance):
    if not state.rows:
        return state
    return edits.remove_row(state, chance.randrange(state.rows))


def move_row(state, chance):
    if not state.rows:
        return state
    row, to = (chance.randrange(state.rows) for _ in "ab")
    return edits.move_row(state, row, to)


def widen(state, chance):
    tokens = state.table.width
    if not tokens:
        return state
    return edits.set_width(state, tokens + chance.randrange(1, 4))


def edit_setting(state, chance):
    name = chance.choice(list(state.typed))
    value = anything(chance)
    if name in CHOICES:
        value = chance.choice(CHOICES[name])
    if name in FLAGS:
        value = not state.typed[name]
    return replace(state, typed={**state.typed, name: value})


def turn_switch(state, chance):
    name = chance.choice(["detector", "evaluation", "training_guard"])
    return replace(state, **{name: not getattr(state, name)})


def normalize(state, chance):
    return replace(state, normalization=chance.choice(NORMALIZATIONS))


def choose_bugs(state, chance):
    some = [name for name in gradebook.BUGS if chance.random() < 0.4]
    return replace(state, bugs=tuple(some))


def select(state, chance):
    return replace(state, row=chance.randrange(max(state.rows, 1)))


EDITS = [
    *(edit_cell, edit_cell, empty_cell, paste_flag, add_row, remove_row),
    *(move_row, widen),
    *(edit_setting, edit_setting, turn_switch, normalize, select),
]


def settled(state):
    """The selected row stands in the table, as on a page."""
    return replace(state, row=min(state.row, max(state.rows - 1, 0)))


@pytest.mark.parametrize("seed", range(60))
def test_edits_come_back_from_the_query_string(seed):
    chance = random.Random(seed)
    state = start(gradebook.load(chance.choice(names())))
    for _ in range(chance.randrange(1, 40)):
        state = settled(chance.choice(EDITS)(state, chance))
    covered = chance.random() < 0.5
    query = link.encode(state, covered)
    sent = dict(parse_qsl(link.query_string(query), keep_blank_values=True))
    assert sent == query
    back = link.decode(sent)
    assert back.problems == ()
    assert back.state.same(state)
    assert back.covered is covered


@pytest.mark.parametrize("seed", range(40))
def test_edits_of_the_sandbox_come_back_from_the_query_string(seed):
    chance = random.Random(seed)
    state = start(case(chance.choice(starts())))
    edits = [e for e in EDITS if e not in (turn_switch, normalize)]
    for _ in range(chance.randrange(1, 40)):
        edit = chance.choice([*edits, choose_bugs])
        state = settled(edit(state, chance))
    query = link.encode(state, chance.random() < 0.5)
    sent = dict(parse_qsl(link.query_string(query), keep_blank_values=True))
    assert sent == query
    back = link.decode(sent, "sandbox")
    assert back.problems == () and back.covered
    assert back.state.same(state) and back.state.bugs == state.bugs


@pytest.mark.parametrize("name", starts())
def test_an_untouched_start_is_its_name(name):
    assert link.encode(start(case(name)), False) == {"v": "1", "s": name}


def test_the_bugs_stand_by_name_in_their_order():
    blank = start(case("sandbox"))
    query = {"v": "1", "s": "sandbox"}
    for sent, bugs in (
        ("rejected_rows.partial_groups", ("partial_groups", "rejected_rows")),
        ("none", ()),
        ("zero_std_kl", ("zero_std_kl",)),
    ):
        back = link.decode(query | {"bugs": sent})
        assert back.state.bugs == bugs and back.problems == ()
        again = link.encode(replace(blank, bugs=bugs), True)
        assert set(again["bugs"].split(".")) == set(sent.split("."))


@pytest.mark.parametrize("name", names())
def test_the_unedited_scenario_is_its_name(name):
    state = start(gradebook.load(name))
    assert link.encode(state, True) == {"v": "1", "s": name}
    assert link.encode(state, False) == {"v": "1", "s": name, "open": "1"}


def test_no_parameters_are_the_default_covered():
    back = link.decode({}, "rejected_rows")
    assert back.covered and back.problems == ()
    assert back.state.same(start(gradebook.load("rejected_rows")))


def test_every_setting_stands_under_its_own_name():
    state = start(gradebook.load("partial_groups"))
    state = replace(state, typed={**state.typed, "eps": "1,5"}, row=3)
    assert link.encode(state, True) == {
        "v": "1",
        "s": "partial_groups",
        "eps": "1,5",
        "row": "3",
    }


def edited(rows, wide, chance):
    """A table with every cell typed anew, without log-probabilities."""
    cells = {
        "prompt": [f"prompt {chance.randrange(100)}" for _ in rows],
        "reward": [f"{chance.uniform(-9, 9):.4f}" for _ in rows],
        "eos": [chance.random() < 0.5 for _ in rows],
        "step": [str(chance.randrange(3)) for _ in rows],
        "steps": [str(chance.randrange(10, 99)) for _ in rows],
        "kept_steps": [str(chance.randrange(9)) for _ in rows],
    } | {f"t{t + 1}": [chance.random() < 0.5 for _ in rows] for t in range(wide)}
    return Table.of_columns(cells)


@pytest.mark.parametrize("wide", [16])
@pytest.mark.parametrize("name", [*names(), *starts()])
def test_32_fully_edited_rows_fit(name, wide):
    state = replace(start(case(name)), bugs=("partial_groups",))
    table = edited(range(32), wide, random.Random(name))
    if name in names():
        state = start(gradebook.load(name))
    typed = {
        n: v if n in CHOICES or n in FLAGS else "0.12345678"
        for n, v in state.typed.items()
    }
    state = replace(state, table=table, row=31, typed=typed)
    query = link.encode(state, False)
    assert len(link.query_string(query)) < 2000
    assert link.fits(query) and link.excess(query) == ""
    assert link.decode(query).state.same(state)


def test_what_does_not_fit_is_said():
    chance = random.Random(1)
    table = edited(range(400), 16, chance)
    state = replace(start(gradebook.load("rejected_rows")), table=table)
    query = link.encode(state, True)
    length = len(link.query_string(query))
    assert length > 2000 and not link.fits(query)
    assert str(length) in link.excess(query)
    assert "scenario file" in link.excess(query)
    assert link.decode(query).state.same(state)


BASE = {"v": "1", "s": "partial_groups"}
SANDBOX = {"v": "1", "s": "sandbox"}
GOOD = packed({"c": {"reward": {"10": "5"}}})
BOMB = packed(b'"' + b"0" * 50_000_000 + b'"')
DAMAGED = {
    "no version": ({"s": "partial_groups"}, "'v'"),
    "version 2": (BASE | {"v": "2"}, "'2'"),
    "version text": (BASE | {"v": "one"}, "'one'"),
    "version long": (BASE | {"v": "9" * 5000}, "'v'"),
    "no scenario": ({"v": "1", "eps": "1"}, "'s'"),
    "unknown scenario": (BASE | {"s": "partial_grups"}, "'partial_grups'"),
    "scenario path": (BASE | {"s": "../../etc/passwd"}, "passwd"),
    "scenario file": (BASE | {"s": "partial_groups.toml"}, ".toml"),
    "scenario empty": (BASE | {"s": ""}, "'s'"),
    "scenario null": (BASE | {"s": "\x00"}, "\\x00"),
    "unknown key": (BASE | {"colour": "red"}, "'colour'"),
    "empty key": (BASE | {"": "red"}, "''"),
    "no string": (BASE | {"row": 3}, "'row'"),
    "a list": (BASE | {"eps": ["1", "2"]}, "'eps'"),
    "none": (BASE | {"t": None}, "'t'"),
    "open maybe": (BASE | {"open": "maybe"}, "'maybe'"),
    "row text": (BASE | {"row": "ten"}, "'ten'"),
    "row negative": (BASE | {"row": "-1"}, "'-1'"),
    "row outside": (BASE | {"row": "12"}, "0 to 11"),
    "row huge": (BASE | {"row": "9" * 9999}, "'row'"),
    "row other digits": (BASE | {"row": "٣"}, "'row'"),
    "row past a cut": (
        BASE | {"row": "5", "t": packed({"n": 2})},
        "0 to 1",
    ),
    "detector": (BASE | {"detector": "true"}, "'detector'"),
    "evaluation": (BASE | {"evaluation": "2"}, "'evaluation'"),
    "guard": (BASE | {"training_guard": ""}, "'training_guard'"),
    "normalization": (BASE | {"normalization": "thrice"}, "'thrice'"),
    "choice": (BASE | {"baseline": "median"}, "'median'"),
    "choice ddof": (BASE | {"ddof": "2"}, "'ddof'"),
    "flag": (BASE | {"mask_no_eos": "yes"}, "'mask_no_eos'"),
    "long setting": (BASE | {"eps": "1" * 5000}, "5000"),
    "longest value": (BASE | {"eps": "1" * 400_000}, "400000"),
    "no base64": (BASE | {"t": "%%%"}, "base64"),
    "empty t": (BASE | {"t": ""}, "base64"),
    "one letter": (BASE | {"t": "A"}, "damaged"),
    "no zlib": (BASE | {"t": "AAAA"}, "damaged"),
    "cut off": (BASE | {"t": GOOD[:-8]}, "'t'"),
    "cut by one": (BASE | {"t": GOOD[:-1]}, "'t'"),
    "followed": (BASE | {"t": GOOD + "AAAAAAAA"}, "'t'"),
    "bomb": (BASE | {"t": BOMB}, "200000"),
    "no JSON": (BASE | {"t": packed(b"{")}, "JSON"),
    "half a character": (
        BASE | {"t": packed({"c": {"prompt": {"0": "\ud800"}}})},
        "JSON",
    ),
    "half a character in UTF-8": (
        BASE | {"t": packed(b'{"c":{"prompt":{"0":"\xed\xa0\x80"}}}')},
        "JSON",
    ),
    "no UTF-8": (BASE | {"t": packed(b'"\xff"')}, "JSON"),
    "deep": (BASE | {"t": packed(b"[" * 90_000)}, "JSON"),
    "huge number": (BASE | {"t": packed(b"1" * 9000)}, "JSON"),
    "key twice": (BASE | {"t": packed(b'{"n":1,"n":2}')}, "JSON"),
    "a list in t": (BASE | {"t": packed([1])}, "[1]"),
    "null in t": (BASE | {"t": packed(None)}, "None"),
    "other part": (BASE | {"t": packed({"z": 1})}, "'z'"),
    "rows too many": (BASE | {"t": packed({"n": 1001})}, "1001"),
    "rows negative": (BASE | {"t": packed({"n": -1})}, "-1"),
    "rows true": (BASE | {"t": packed({"n": True})}, "True"),
    "rows null": (BASE | {"t": packed({"n": None})}, "'t.n'"),
    "rows float": (BASE | {"t": packed({"n": 1e999})}, "inf"),
    "columns": (BASE | {"t": packed({"k": ["prompt"]})}, "'t.k'"),
    "column twice": (
        BASE | {"t": packed({"k": ["prompt", "reward", "reward"]})},
        "'t.k'",
    ),
    "column unknown": (
        BASE | {"t": packed({"k": ["prompt", "reward", "x"]})},
        "'t.k'",
    ),
    "columns many": (
        BASE | {"t": packed({"k": ["prompt", "reward", 10**9]})},
        "'t.k'",
    ),
    "columns text": (BASE | {"t": packed({"k": "prompt"})}, "'t.k'"),
    "cells list": (BASE | {"t": packed({"c": []})}, "'t.c'"),
    "cells of none": (BASE | {"t": packed({"c": {"x": []}})}, "'x'"),
    "too few cells": (
        BASE | {"t": packed({"c": {"reward": ["1"]}})},
        "12 cells",
    ),
    "cell number": (
        BASE | {"t": packed({"c": {"reward": {"3": 7}}})},
        "'t.c.reward.3'",
    ),
    "cell object": (
        BASE | {"t": packed({"c": {"prompt": {"0": {"a": []}}}})},
        "'t.c.prompt.0'",
    ),
    "cell of no row": (
        BASE | {"t": packed({"c": {"reward": {"99": "7"}}})},
        "below 12",
    ),
    "cell of text": (
        BASE | {"t": packed({"c": {"reward": {"x": "7"}}})},
        "'x'",
    ),
    "bugs on a bug's page": (BASE | {"bugs": "zero_std_kl"}, "'bugs'"),
    "unknown bug": (SANDBOX | {"bugs": "zero_std_kl.x"}, "'x'"),
    "no known bug": (SANDBOX | {"bugs": "x"}, "double_normalization is"),
    "bugs empty": (SANDBOX | {"bugs": ""}, "''"),
    "bugs long": (SANDBOX | {"bugs": "a" * 400_000}, "'bugs'"),
    "unknown start": (
        SANDBOX | {"s": "sandbox-partial_grups"},
        "'sandbox-partial_groups' is shown",
    ),
    "sandbox open": (SANDBOX | {"open": "1"}, "'open'"),
    "sandbox evaluation": (SANDBOX | {"evaluation": "1"}, "'evaluation'"),
    "sandbox row": (SANDBOX | {"row": "8"}, "0 to 7"),
    "bits": (
        {"v": "1", "s": "rejected_rows", "t": packed({"c": {"t1": "012"}})},
        "'t.c.t1'",
    ),
    "flag text": (
        {
            "v": "1",
            "s": "rejected_rows",
            "t": packed({"c": {"t1": {"0": 1}}}),
        },
        "'t.c.t1.0'",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_link_gives_its_message(case):
    query, said = DAMAGED[case]
    back = link.decode(query)
    assert len(back.problems) == 1
    assert said in back.problems[0]
    assert back.problems[0].startswith("In this link ")
    assert back.problems[0].endswith(".") and len(back.problems[0]) < 400
    assert back.state.batch() is not None


def test_there_are_fifty_damaged_links():
    assert len(DAMAGED) >= 50


@pytest.mark.parametrize("seed", range(40))
def test_one_changed_letter_of_a_table_is_noticed(seed):
    chance = random.Random(seed)
    at = chance.randrange(len(GOOD) - 1)  # the last one holds spare bits
    letters = set(string.ascii_letters + string.digits + "-_") - {GOOD[at]}
    text = GOOD[:at] + chance.choice(sorted(letters)) + GOOD[at + 1 :]
    back = link.decode(BASE | {"t": text})
    assert len(back.problems) == 1
    assert back.state.same(start(gradebook.load("partial_groups")))


@pytest.mark.parametrize("seed", range(120))
def test_no_input_raises(seed):
    chance = random.Random(seed)
    deep = [[[{"a": [None, 10**400, "\ud800", -0.0, {}]}]]]
    odd = [
        *(None, 0, 10**300, "", "\ud800", "١", [], {}, deep, True, 1e308),
        *("n", "t1", ["prompt", "reward", 3], {"0": None}, ["1"] * 12),
    ]
    value = {chance.choice(["n", "k", "c", "q"]): chance.choice(odd) for _ in range(3)}
    columns = ["prompt", "reward", "t1", "eos", "logp"]
    value["c"] = {chance.choice(columns): chance.choice(odd) for _ in "ab"}
    query = {chance.choice(link.KEYS): chance.choice(odd) for _ in range(6)}
    query["t"] = packed(value) if seed % 2 else anything(chance)
    query["s"] = chance.choice([*names(), *starts()]) if seed % 3 else "no\udcffne"
    back = link.decode(query)
    assert all(isinstance(problem, str) for problem in back.problems)
    assert link.decode(link.encode(back.state, True)).problems == ()
    back.state.problems()


def test_a_thousand_problems_are_counted():
    query = BASE | {f"key{n}": "1" for n in range(1000)}
    problems = link.decode(query).problems
    assert len(problems) == 21
    assert problems[-1] == "And 980 more like these."


def test_good_parts_of_a_damaged_link_are_kept():
    query = BASE | {"eps": "0.5", "ddof": "7", "row": "4", "open": "1"}
    back = link.decode(query)
    assert len(back.problems) == 1
    assert back.state.typed["eps"] == "0.5"
    assert (back.state.row, back.covered) == (4, False)


def test_an_unknown_variant_leads_to_its_bug():
    back = link.decode({"v": "1", "s": "zero_std_kl-gone", "eps": "3"})
    assert back.state.same(start(gradebook.load("zero_std_kl")))
    assert "without the link's changes" in back.problems[0]


def test_the_keys_of_others_are_passed_over():
    back = link.decode(BASE | {"present": "1"}, others=("present",))
    assert back.problems == ()


def test_keys_of_others_alone_are_the_default():
    back = link.decode({"room": "x"}, "zero_std_kl", others=("room",))
    assert back.problems == ()
    assert back.state.scenario.name == "zero_std_kl"


def test_a_bomb_is_not_unpacked():
    tracemalloc.start()
    link.decode(BASE | {"t": BOMB})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_cells_are_written_the_shorter_way():
    rows = [{"prompt": "A", "reward": 0, "mask": [0]} for _ in range(40)]
    own = Table.of(rows)
    every = own.with_column("mask", [[True]] * 40)
    assert unpacked(pack(every, own)) == {"c": {"t1": "1" * 40}}
    one = own.with_cell(3, "t1", True)
    assert unpacked(pack(one, own)) == {"c": {"t1": {"3": True}}}


def unpacked(text):
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return json.loads(zlib.decompress(packed))
