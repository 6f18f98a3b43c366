"""The page "Mystery trainer"."""

import json

import pytest

import gradebook
from gradebook.cases.edits import set_cell
from gradebook.ui.pages.mystery import (
    NONE,
    WRONG,
    Crash,
    Game,
    first_state,
    hidden,
    look,
    read,
    suspects,
)

PAGE = "mystery"
SEEDS = {hidden(f"seed{n}"): f"seed{n}" for n in range(400)}
"""A seed for each suspect."""
STOPPED = "The trainer stopped with an error"


def named(page, stage, name):
    """Names stage and bug on the page."""
    seed = page.app.session_state["mystery"].seed
    pills = page.app.button_group(key=f"mystery-stage-{seed}")
    pills.set_value(stage)
    page.run()
    pills = page.app.button_group(key=f"mystery-bug-{seed}-{stage}")
    pills.set_value(name)
    page.run()
    return page.click("mystery-name")


def shown(page):
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


def test_nothing_sent_depends_on_the_bug_but_the_advantages(visit):
    """Trainers that agree on a batch make the same page, byte by byte."""
    given = {
        name: look(name, first_state()).faulty.advantage.tolist() for name in suspects()
    }
    alike = [name for name in given if given[name] == given[NONE]]
    assert len(alike) > 5
    pages = [visit(PAGE, {"first": 1}, seed=SEEDS[n]) for n in alike[:4]]
    assert len({shown(page) for page in pages}) == 1


@pytest.mark.parametrize("name", [n for n in suspects() if n])
def test_the_board_has_no_trace_of_a_cause(name):
    from gradebook.ui.pages.mystery import data_of

    data = data_of(Game(SEEDS[name]))
    text = json.dumps(data)
    assert name not in text and gradebook.bug(name).title not in text
    rows = len(data["rows"])
    assert data["causes"] == [
        {"group": [-1] * rows, "at": [None] * rows, "say": "1" * rows}
    ]
    assert [len(p["engines"]) for p in data["panels"]] == [1]
    assert "second" not in data and data["panels"][0]["flips"] == []


def test_hints_cost_edits_and_the_link_holds_the_seed_alone(visit):
    seed = SEEDS[NONE]
    page = visit(PAGE, seed=seed)
    page.cell(0, reward="2").cell(4, eos=False)
    page.click("mystery-hint-rows")
    page.click("mystery-hint-half")
    assert "7 edits so far" in page.text
    assert "Rows of batch 2 whose advantage is wrong: none." in page.text
    link = page.address
    assert link == {"v": "1", "seed": seed}
    again = visit(PAGE, **link)
    assert again.table["reward"] == list(first_state().table["reward"])
    page.click("mystery-over")
    assert "You gave up after 7 edits. The trainer has no bug." in page.text
    assert page.board["summary"].endswith("advantages for this batch are correct.")
    assert page.address == link


def test_the_history_is_free_and_a_repeated_batch_too(visit):
    page = visit(PAGE, seed=SEEDS[NONE])
    page.cell(0, reward="2").edit({"do": "undo"}).edit({"do": "redo"})
    page.edit({"do": "undo"}).cell(0, reward="2")
    assert "1 edit so far" in page.text


def test_a_crash_is_said_and_the_batch_stays_to_be_mended(visit):
    state = first_state()
    (name,) = (n for n in suspects() if crashes(n, state))
    page = visit(PAGE, seed=SEEDS[name])
    page.cell(1, eos=False)
    assert STOPPED in page.board["stale"]
    assert "group" not in page.board["stale"] and "size" not in page.text
    assert not page.table["eos"][1] and "1 edit so far" in page.text
    page.cell(1, eos=True)
    assert page.board["stale"] == ""
    page.cell(0, reward="two")
    assert STOPPED not in page.board["stale"]


def crashes(name, state):
    try:
        look(name, set_cell(state, 1, "eos", False))
    except Crash:
        return True
    return False


def test_hints_strike_out_bugs_that_it_is_not_and_name_the_stage(visit):
    (name,) = (n for n in suspects() if crashes(n, first_state()))
    page = visit(PAGE, seed=SEEDS[name])
    page.click("mystery-hint-half")
    page.click("mystery-hint-stage")
    assert f"The stage is `{gradebook.bug(name).stage}`." in page.text
    assert "7 edits so far" in page.text
    struck = page.app.session_state["mystery"].half()
    assert name not in struck and NONE not in struck
    assert len(struck) == (len(suspects()) - 2) // 2


@pytest.mark.parametrize("query", [{"seed": "\u00fc"}, {"unknown": "1"}])
def test_a_link_that_makes_no_sense_still_opens_a_game(query):
    game = read(query)
    assert len(game.log) == 1 and game.seed.isalnum() and not game.over
