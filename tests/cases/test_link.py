"""A link is the whole truth: it gives back the state, or names what it does not
understand."""

import base64
import json
import random
import string
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

import gradebook
from gradebook.cases import link
from gradebook.cases.scenario import case, names, starts
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.core.settings import (
    AT_LEAST_ONE,
    CHOICES,
    FLAGS,
    KINDS,
    read_setting,
)


def packed(value):
    """`t` of a link, made by hand."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(zlib.compress(raw)).decode().rstrip("=")


@some.composite
def states(draw):
    """A case with any settings, switches and bugs; its cells are edited in
    test_edits."""
    state = start(case(draw(some.sampled_from([*names(), *starts()]))))
    changed = {}
    for key in draw(some.sets(some.sampled_from(["bugs", *KINDS]))):
        if key == "bugs" and state.scenario.name in starts():
            bugs = tuple(b for b in gradebook.BUGS if draw(some.booleans()))
            state = replace(state, bugs=bugs)
        elif key in CHOICES or key in FLAGS:
            changed[key] = draw(some.sampled_from(CHOICES.get(key, (False, True))))
        elif key in AT_LEAST_ONE:
            changed[key] = draw(some.integers(1, 99))
        elif key != "bugs":
            most = 1e9 if KINDS[key].fits(1e9) else 1
            changed[key] = draw(some.floats(1e-9, most))
    row = draw(some.integers(0, state.rows - 1))
    state = replace(state, settings=replace(state.settings, **changed), row=row)
    try:
        state.batch()
    except gradebook.GradebookError:  # a learner's state is always valid
        assume(False)
    return state


@given(states(), some.booleans())
def test_a_state_comes_back_from_the_query_string(state, covered):
    query = link.encode(state, covered)
    sent = dict(parse_qsl(link.query_string(query), keep_blank_values=True))
    assert sent == query
    back = link.decode(sent, default="sandbox")
    assert not back.problem and back.state == state
    assert back.covered is (covered or "open" not in query)


@pytest.mark.parametrize("name", [*names(), *starts()])
def test_an_unedited_case_is_its_name(name):
    state, query = start(case(name)), {"v": "1", "s": name}
    assert link.encode(state, True) == query
    opened = {"open": "1"} if name in names() else {}
    assert link.encode(state, False) == query | opened


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


@pytest.mark.parametrize("name", [*names(), *starts()])
def test_32_fully_edited_rows_fit(name):
    table = edited(range(32), 16, random.Random(name))
    state = start(case(name))
    if name in starts():
        state = replace(state, bugs=("partial_groups",))
    kinds = {
        **dict.fromkeys((*CHOICES, *FLAGS)),
        **dict.fromkeys(AT_LEAST_ONE, 12345678),
    }
    changed = {n: kinds.get(n, 0.12345678) or v for n, v in state.settings.items()}
    changed["kl_in_reward"] = 0  # a batch without log-probabilities has no KL
    settings = replace(state.settings, **changed)
    state = replace(state, table=table, row=31, settings=settings)
    query = link.encode(state, False)
    assert len(link.query_string(query)) < 2000
    assert link.excess(query) == ""
    assert link.decode(query).state == state


def test_what_does_not_fit_is_said():
    table = edited(range(400), 16, random.Random(1))
    state = replace(start(gradebook.load("rejected_rows")), table=table)
    query = link.encode(state, True)
    length = len(link.query_string(query))
    assert length > 2000
    assert str(length) in link.excess(query)
    assert link.decode(query).state == state


BASE = {"v": "1", "s": "partial_groups"}
SANDBOX = {"v": "1", "s": "sandbox"}
GOOD = packed({"c": {"reward": {"10": "5"}}})
BOMB = packed(b'"' + b"0" * 50_000_000 + b'"')
DAMAGED = [
    ({"v": "1", "eps": "1"}, "'s'"),
    (BASE | {"s": "../../etc/passwd"}, "passwd"),
    (SANDBOX | {"s": "sandbox-partial_grups"}, "'sandbox-partial_grups'"),
    (BASE | {"row": "12"}, "0 to 11"),
    (BASE | {"row": "9" * 9999}, "'row'"),
    (BASE | {"row": "\u0663"}, "'row'"),
    (BASE | {"row": "5", "t": packed({"n": 2})}, "0 to 1"),
    (BASE | {"baseline": "median"}, "'median'"),
    (BASE | {"normalization": "thrice"}, "'thrice'"),
    (BASE | {"mask_no_eos": "2"}, "'mask_no_eos'"),
    (BASE | {"eps": "1" * 400_000}, "below 1.8e308"),
    (SANDBOX | {"bugs": "zero_std_kl.x"}, "'x'"),
    *((BASE | {"t": text}, "packed by Gradebook") for text in ("%%%", "AAAA")),
    *((BASE | {"t": text}, "'t'") for text in (GOOD[:-8], GOOD + "AAAAAAAA", BOMB)),
    *(
        (BASE | {"t": packed(value)}, "'t' should be")
        for value in [
            *(b"{", b"[" * 90_000, [1], {"c": {"prompt": {"0": "\ud800"}}}),
            *({"n": rows} for rows in (1001, -1, "2")),
            *({"k": k} for k in (7, ["prompt", "reward", "mask"])),
            *({"k": ["prompt", "reward", *k]} for k in ([2, 2], [1, 2], ["step"] * 2)),
            *({"k": ["prompt", "reward", t]} for t in (257, "x")),
            *({"c": cells} for cells in ([], {"x": []})),
            *({"c": {"reward": r}} for r in ({"99": "7"}, {"-1": "7"}, ["1"], 7)),
        ]
    ),
    (BASE | {"t": packed({"c": {"reward": {"3": "x"}}})}, "'t.c.reward.3'"),
]


@pytest.mark.parametrize("query, said", DAMAGED)
def test_a_damaged_link_gives_its_message(query, said):
    back = link.decode(query | {"ddof": "0", "open": "1"})
    assert said in back.problem and len(back.problem) < 400
    assert back.state == start(back.state.scenario)


LETTERS = string.ascii_letters + string.digits + "-_"


@given(some.integers(0, len(GOOD) - 2), some.sampled_from(LETTERS))
def test_one_changed_letter_of_a_table_is_noticed(at, letter):
    assume(letter != GOOD[at])  # the last one holds spare bits
    text = GOOD[:at] + letter + GOOD[at + 1 :]
    back = link.decode(BASE | {"t": text})
    assert back.problem
    assert back.state == start(gradebook.load("partial_groups"))


ODD = some.none() | some.booleans() | some.floats() | some.integers() | some.text()
VALUES = some.recursive(
    ODD | some.sampled_from(["n", "t1", "\ud800", 10**300, ["1"] * 12]),
    lambda parts: some.lists(parts) | some.dictionaries(some.text(), parts),
    max_leaves=8,
)
CELLS = some.dictionaries(some.sampled_from(["prompt", "reward", "t1", "logp"]), VALUES)
TABLES = some.dictionaries(some.sampled_from("nkcq"), VALUES | CELLS).map(packed)


@given(
    some.dictionaries(some.sampled_from(link.KEYS), some.text()),
    TABLES | some.text(),
    some.sampled_from([*names(), *starts(), "no\udcffne"]),
)
def test_every_link_gives_a_valid_batch(query, table, name):
    back = link.decode({**query, "t": table, "s": name})
    back.state.batch()
    assert not link.decode(link.encode(back.state, True)).problem


def test_an_unknown_variant_leads_to_its_bug():
    back = link.decode({"v": "1", "s": "zero_std_kl-gone", "eps": "3"})
    assert back.problem and back.state == start(gradebook.load("zero_std_kl"))


def test_unknown_link_keys_are_ignored_and_no_keys_mean_the_default():
    for query in ({"room": "x"}, {}, {"room": "x", "s": "zero_std_kl", "bugs": "x"}):
        back = link.decode(query, "zero_std_kl")
        assert not back.problem and back.covered
        assert back.state == start(gradebook.load("zero_std_kl"))


MANY_HEADERS = packed({"n": 1000, "k": ["prompt", "reward"] + [256] * 49_000})
"""339 characters. It took a minute and 1.1 GB."""


@pytest.mark.parametrize("text", [BOMB, MANY_HEADERS])
def test_a_bomb_is_not_unpacked(text):
    tracemalloc.start()
    assert "packed by Gradebook" in link.decode(BASE | {"t": text}).problem
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


FROZEN = json.loads((Path(__file__).parent / "links.json").read_text("utf-8"))


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: frozen["title"])
def test_an_old_link_opens_to_the_state_it_always_did(frozen):
    back = link.decode(dict(parse_qsl(frozen["link"], keep_blank_values=True)))
    state, kept = back.state, frozen["state"]
    assert back.covered is kept["covered"]
    if problem := frozen.get("problem"):
        assert problem in back.problem and state == start(state.scenario)
        return
    assert not back.problem
    assert state.scenario.name == kept["scenario"]
    assert (list(state.bugs), state.row) == (kept["bugs"], kept["row"])
    assert state.settings.evaluation == kept["evaluation"]
    for name, (setting, values) in link.RENAMED.items():
        was = str(kept[name]).removeprefix("twice, ").replace(" ", "-")
        if isinstance(kept[name], bool):
            was = str(int(kept[name]))
        assert state.settings[setting] == values.get(was, kept[name]), name
    settings = {name: read_setting(name, text) for name, text in kept["typed"].items()}
    assert state.settings == replace(state.settings, **settings)
    cells = {name: list(state.table[name]) for name in state.table.headers}
    assert cells == kept["cells"]
