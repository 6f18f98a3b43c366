"""The page "Mystery trainer": a mystery is a seed, which says nothing about the bug,
and every mystery is solvable: a fixed list of edits names each bug."""

import json
from collections import Counter

import pytest
import torch

import gradebook
from gradebook.analysis.comparison import same
from gradebook.cases import edits as acts
from gradebook.cases.state import start
from gradebook.core.errors import GradebookError
from gradebook.ui.board.view import view
from gradebook.ui.pages.mystery import (
    COVER,
    NONE,
    WRONG,
    first_case,
    hidden,
    look,
    read,
    suspects,
)

PAGE = "mystery"
SEEDS = {hidden(f"seed{n}"): f"seed{n}" for n in range(400)}
"""A seed for each suspect."""
STOPPED = "The trainer stopped with an error"
FIRST = start(first_case())
NO_EOS = acts.set_cell(FIRST, 1, "eos", False)


def test_every_bug_that_advantages_show_and_no_bug_are_among_the_answers():
    shown = {n for n in gradebook.BUGS if gradebook.bug(n).in_advantages}
    assert set(suspects()) == shown | {NONE}
    assert 0 < len(shown) < len(gradebook.BUGS)


def test_seeds_hide_every_suspect_about_as_often():
    counts = Counter(hidden(f"seed{n}") for n in range(1900))
    assert set(counts) == set(suspects())
    assert all(50 < count < 200 for count in counts.values())


def test_the_first_batch_has_a_value_in_every_column_that_a_bug_reads():
    tables = [gradebook.load(bug).rows for bug in suspects() if bug]
    columns = {name for table in tables for name in table.columns}
    needed = columns - {"logp", "ref_logp", "step"}
    assert needed <= set(FIRST.table.columns)


def cell(row, column, value):
    return lambda state: acts.set_cell(state, row, column, value)


def setting(name, value):
    return lambda state: acts.set_setting(state, name, value)


STRATEGY = (
    cell(1, "eos", False),
    cell(5, "scored", False),
    lambda state: acts.set_mask(state, 6, 0, 3, False),
    cell(3, "rollout", "2"),
    cell(4, "text", "A"),
    lambda state: acts.remove_row(state, 2),
    setting("whiten_tokens", True),
    cell(0, "rank", "1"),
    lambda state: acts.set_mask(state, 3, 1, 3, False),
    setting("whiten_tokens", False),
    # Two rows of prompt A that differ by 0.0001: small deviations.
    cell(2, "reward", "1"),
    cell(0, "reward", "1.0001"),
    # 0.5 beside three equal rewards, divided by the others' deviation.
    cell(1, "eos", True),
    cell(1, "reward", "0.9"),
    cell(2, "reward", "0.9"),
    lambda state: acts.add_row(state, 2),
    cell(3, "rollout", "9"),
    cell(0, "reward", "0.5"),
    setting("scale", "others_std"),
    setting("baseline", "leave_one_out"),
)
"""One edit after the other, whatever is hidden."""


def shown(name, state):
    """The advantages that a trainer shows, None where it stops."""
    try:
        return look(name, state).faulty.advantage
    except GradebookError:
        return None


def alike(a, b):
    if a is None or b is None:
        return a is b
    return bool(same(a, b).all())


@pytest.fixture(scope="module")
def seen():
    """What each suspect gives for each batch of the strategy."""
    states = [FIRST]
    for act in STRATEGY:
        states.append(act(states[-1]))
    return {name: [shown(name, state) for state in states] for name in suspects()}


@pytest.mark.parametrize("name", suspects(), ids=lambda n: n or "none")
def test_the_strategy_names_every_bug_from_advantages_alone(seen, name):
    left = {
        suspect
        for suspect in suspects()
        if all(alike(a, b) for a, b in zip(seen[suspect], seen[name]))
    }
    assert left == {name}


def test_no_advantage_reveals_the_trainers_number_type(seen):
    types = {name: look(name, FIRST).faulty.score.dtype for name in suspects()}
    (low,) = (n for n, kind in types.items() if kind == torch.float32)
    assert torch.equal(seen[low][0], seen[NONE][0])
    assert seen[low][0].dtype == torch.float64


def test_wrong_rows_by_hand(seen):
    """Without its EOS, row 1 of A earns nothing; a trainer that still counts
    it divides 1 1 0 0 by another deviation than 1 0 0. Seven rows that are left do
    not divide by four, so that one stops."""
    rows = {}
    for name in suspects():
        game = read({"seed": SEEDS[name]})
        game.do(acts.set_cell, 1, "eos", False)
        game.hint("rows")
        (rows[name],) = (text.partition(": ")[2] for text in game.hints)
    assert rows[NONE] == "none."
    assert "0, 2, 3." in rows.values()
    (crashed,) = [n for n in suspects() if seen[n][1] is None]
    assert rows[crashed] == "0, 1, 2, 3, 4, 5, 6, 7."


@pytest.mark.parametrize("name", [NONE, "filtered_first"])
def test_a_batch_that_no_trainer_can_compute_has_no_wrong_rows(name):
    """Without EOS, no row has a token that could be whitened."""
    game = read({"seed": SEEDS[name]})
    game.do(acts.set_setting, "whiten_tokens", True)
    for row in range(game.state.rows):
        game.do(acts.set_cell, row, "eos", False)
    game.hint("rows")
    ((text, cost),) = game.hints.items()
    assert text.startswith("No trainer can compute") and cost == 0


# The page


def named(page, stage, name):
    seed = page.app.session_state["mystery"].seed
    page.put(f"mystery-stage-{seed}", stage)
    page.put(f"mystery-bug-{seed}-{stage}", name)
    return page.click("mystery-name")


def sent(page):
    """All that the page sends, without what names the seed."""
    data = page.board
    seed = page.app.session_state["mystery"].seed
    text = str(page.app._tree).replace(seed, "SEED")
    return text.replace(data["epoch"], "EPOCH")


def test_a_game_is_named_and_its_score_counts_edits_and_wrong_names(visit):
    (name,) = (
        n
        for n in suspects()
        if n and gradebook.bug(n).correct_phrase == "(reward - mean) / deviation"
    )
    page = visit(PAGE, seed=SEEDS[name])
    # reward - mean / deviation of 1 1 0 0: 1 - 0.5 / 0.5774 = 0.134.
    assert page.board["panels"][0]["text"][0][0] == "+0.134"
    page.cell(0, reward="2")
    page.cell(0, reward="3")
    assert "2 edits so far" in page.text
    other = next(
        n
        for n in suspects()
        if n and n != name and gradebook.bug(n).stage == "standardized"
    )
    named(page, "standardized", other)
    assert "The stage is right, the bug is not." in page.text
    assert f"{2 + WRONG} edits so far" in page.text
    named(page, "none", NONE)
    assert "Neither the stage nor the bug" in page.text
    named(page, "standardized", name)
    title = gradebook.bug(name).title
    assert f"You named it in {2 + 2 * WRONG} edits. **{title}**" in page.text
    assert not page.board["covered"] and len(page.board["causes"]) == 2


def test_nothing_sent_depends_on_the_bug_but_the_advantages(visit, monkeypatch):
    monkeypatch.setattr("secrets.randbelow", lambda n: 1)  # in the widgets' keys
    given = {name: look(name, FIRST).faulty.advantage.tolist() for name in suspects()}
    alike = [name for name in given if given[name] == given[NONE]]
    assert len(alike) > 5
    pages = [visit(PAGE, seed=SEEDS[n]) for n in alike[:4]]
    assert len({sent(page) for page in pages}) == 1


def test_the_board_has_no_trace_of_a_cause():
    for name in filter(None, suspects()):
        game = read({"seed": SEEDS[name]})
        data = view(game, kind="sign", covered=True) | COVER
        text = json.dumps(data)
        assert name not in text and gradebook.bug(name).title not in text
        assert data["causes"] == [] and "second" not in data
        assert [len(p["engines"]) for p in data["panels"]] == [1]
        assert data["panels"][0]["flips"] == []


def test_hints_cost_edits_and_the_link_holds_the_seed_alone(visit):
    seed = SEEDS[NONE]
    page = visit(PAGE, seed=seed)
    page.cell(0, reward="2").cell(4, eos=False)
    page.click("mystery-hint-rows").click("mystery-hint-stage")
    assert "8 edits so far" in page.text
    assert "The stage is `none`." in page.text
    assert "Rows of batch 2 whose advantage is wrong: none." in page.text
    link = page.address
    assert link == {"v": "1", "seed": seed}
    again = visit(PAGE, **link)
    assert again.table["reward"] == list(FIRST.table["reward"])
    page.click("mystery-over")
    assert "You gave up after 8 edits. The trainer has no bug." in page.text
    assert page.board["summary"].endswith("advantages for this batch are correct.")
    assert page.address == link


def test_the_history_is_free_and_a_repeated_batch_too(visit):
    page = visit(PAGE, seed=SEEDS[NONE])
    page.cell(0, reward="2").edit({"do": "undo"}).edit({"do": "redo"})
    page.edit({"do": "undo"}).cell(0, reward="2")
    assert "1 edit so far" in page.text


def test_a_crash_is_said_and_the_batch_stays_to_be_mended(visit):
    (name,) = (n for n in suspects() if shown(n, NO_EOS) is None)
    page = visit(PAGE, seed=SEEDS[name]).cell(1, eos=False)
    assert STOPPED in page.board["stale"]
    assert "group" not in page.board["stale"] and "size" not in page.text
    assert not page.table["eos"][1] and "1 edit so far" in page.text
    assert page.cell(1, eos=True).board["stale"] == ""
    assert STOPPED not in page.cell(0, reward="two").board["stale"]
    page.click("mystery-hint-stage")
    assert f"The stage is `{gradebook.bug(name).stage}`." in page.text


@pytest.mark.parametrize("query", [{"seed": "\u00fc"}, {"unknown": "1"}])
def test_a_link_that_makes_no_sense_still_opens_a_game(query):
    game = read(query)
    assert game.seed.isalnum() and not game.over
