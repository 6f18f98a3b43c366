"""Edits on the board: all of them move the marks to the right numbers, none
is lost, none breaks the page."""

import pytest

import gradebook

# Partial groups, row 11 edited from 100 to 0: rows 8 to 11 are 0 1 2 0,
# mean 0.75, squares 2.75, std sqrt(2.75 / 3) = 0.957427 (+ 1e-5).
AFTER = [-0.783341, 0.261114, 1.305569, -0.783341]

IMPOSSIBLE = [
    ("", "expected a number, found an empty cell"),
    ("abc", "expected a number, found 'abc'"),
    ("1,5", "expected a number with a decimal point, found '1,5'"),
    ("nan", "expected a number, found 'nan'"),
]


def test_an_impossible_reward_gets_its_message_and_changes_nothing(visit):
    page = visit("partial_groups")
    good = page.marks()
    for cell, message in IMPOSSIBLE:
        page.cell(11, reward=cell)
        assert page.errors == [f"reward, row 11: {message}"]
        assert page.marks() == good and not page.stale
        assert page.board["refused"]["11 reward"][0] == cell
        assert page.table["reward"][11] == "100"
    page.cell(11, reward="0")
    assert page.errors == [] and page.board["refused"] == {}
    correct, faulty = ([side[row] for row in (8, 9, 10, 11)] for side in page.marks())
    assert correct == pytest.approx([-0.99999, 0, 0.99999, 0])
    assert faulty == pytest.approx(AFTER)


@pytest.mark.parametrize(
    "key, value",
    [
        ("set-baseline", "batch_mean"),
        ("set-eps", "0.5"),
        ("set-mask_no_eos", True),
        ("width", 4),
        ("bugs", ["zero_std_kl"]),
    ],
)
def test_a_setting_that_was_undone_is_not_set_again(visit, key, value):
    page = visit("sandbox")
    name = f"{key}-sandbox"
    before = page.widget(name).value
    page.put(name, value)
    late = page.app._tree.get_widget_states()
    page.press("undo").run(late)
    assert page.widget(name).value == before


def test_a_token_of_the_mask_takes_a_rejected_row_back(visit, marked):
    page = visit("rejected_rows").cell(0, t2=True)
    assert page.table["t2"] == [True] * 3
    assert page.table["t1"] == [False, True, True]
    # Mean 103 / 3, std 56.8712: 65.6667 / 56.8712 = 1.154656.
    every = [1.154656, -0.586120, -0.568536]
    assert page.marks() == [marked(every)] * 2


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_down_to_no_row_and_up_again(visit, bug):
    page = visit(bug).paste("3\n5")
    page.press("remove").press("remove")
    assert page.table["reward"] == []
    assert "The batch has no rows." in page.text
    assert page.pictures == [] and not page.errors
    page.press("add").press("add")
    assert page.table["reward"] == ["0", "0"]
    # A bug whose engine needs whole groups refuses two rows.
    refused = [said for said in page.errors if "do not divide" in said]
    assert page.errors == refused
    assert refused or list(page.marks()[0]) == [0, 1]
    page.cell(1, reward="4")
    assert page.table["reward"] == ["0", "4"] and page.errors == refused


def test_a_pasted_block_replaces_the_rows(visit, marked):
    page = visit("partial_groups").paste("A\t4\nB\t1\nA\t2\nB\t3\n")
    assert page.table == {
        "prompt": ["A", "B", "A", "B"],
        "reward": ["4", "1", "2", "3"],
    }
    # Each prompt: mean and +-1, std sqrt(2) + 1e-5. All four as one
    # stride: mean 2.5, squares 5, std sqrt(5 / 3) = 1.290994 + 1e-5.
    by_prompt = [0.707102, -0.707102, -0.707102, 0.707102]
    by_stride = [1.161886, -1.161886, -0.387295, 0.387295]
    assert page.marks() == [marked(by_prompt), marked(by_stride)]
    assert page.row == 3


def test_a_block_without_shape_changes_nothing(visit):
    page = visit("partial_groups")
    before, marks = page.table, page.marks()
    page.paste("A\t1\nB")
    assert page.errors == ["paste, row 1: expected 2 cells, found 1"]
    assert page.table == before and page.marks() == marks
    assert not page.stale
    page.paste("1\n2")
    assert page.errors == [] and page.table["reward"] == ["1", "2"]


def test_a_shrunk_batch_shows_the_bug_and_can_be_undone_step_by_step(visit):
    page = visit("partial_groups").end("deeper").open("shrink").press("shrink")
    steps, _ = page.board["history"]
    # Of the report's 12 rows, two of one prompt and one of another.
    prompts = page.table["prompt"]
    assert len(prompts) == 3 and len(set(prompts)) == 2
    assert page.board["panels"][0]["differ"]
    for _ in range(steps):
        page.press("undo")
    assert len(page.table["prompt"]) == 12


def test_reset_brings_the_case_back(visit):
    page = visit("partial_groups")
    before, marks = page.table, page.marks()
    assert not page.board["edited"]
    page.cell(11, reward="abc").press("add")
    page.put("set-eps-partial_groups", "x")
    page.press("reset")
    assert page.table == before and page.marks() == marks
    assert page.errors == [] and not page.stale
    assert page.setting("eps") == "1e−5"
    assert not page.board["edited"]
    assert page.row == 10


def test_edits_survive_a_switch_of_page_and_of_case(visit):
    page = visit("partial_groups").cell(11, reward="0").cell(10, reward="1,5")
    page.put("set-eps-partial_groups", "0.5")
    edited = page.marks()
    page.choose("partial_groups-tail").choose("partial_groups")
    assert page.marks() == edited
    page.go("rejected_rows").go("partial_groups")
    assert page.marks() == edited
    assert page.table["reward"][11] == "0"
    assert page.setting("eps") == "0.5"
    assert page.board["refused"]["10 reward"][0] == "1,5"


def test_a_selected_row_is_the_formulas_row_and_no_step_of_undo(visit):
    page = visit("partial_groups").select(8)
    assert page.row == 8
    assert page.board["path"]["row"] == 8
    # Prompt C without its outlier: 0 1 2, mean 1; cut by four: mean 25.75.
    assert "(0.000 − <b>25.750</b>)" in page.text
    assert page.board["history"] == [0, 1]


def test_prompts_are_shown_as_text_and_never_as_markup(visit):
    page = visit("partial_groups").cell(11, prompt="<b>x</b>")
    assert "<td><b>x</b></td>" not in page.text
    assert page.table["prompt"][11] == "<b>x</b>"


def test_a_setting_of_a_link_that_has_no_field_is_named(visit):
    page = visit("partial_groups")
    draft = page.app.session_state["drafts"]["partial_groups"]
    assert "without a field" not in page.text
    typed = draft.state.typed
    draft.edit(typed={**typed, "reward_clip": "1", "group_size": "2"})
    assert "Set without a field here: Reward clip 1." in page.run().text
