"""What the board is given to draw, and what it answers to edits."""

import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from ui.answered import answered

from gradebook.analysis.comparison import compared
from gradebook.bugs import BUGS
from gradebook.cases import link
from gradebook.cases.edits import ACTS
from gradebook.cases.scenario import load
from gradebook.ui.board import component
from gradebook.ui.board.lesson import challenge, lesson, path
from gradebook.ui.board.view import view
from gradebook.ui.parts.drafts import SKIPPED, Guess, PageDraft, Progress


def edited(name, *edits):
    draft = PageDraft(load(name))
    assert draft.fault == ""  # drawn before the edits
    numbered = [{"n": n, **edit} for n, edit in enumerate(edits, 1)]
    component.taken(draft, {"epoch": draft.channel.epoch, "edits": numbered})
    return draft


def drawn(name, *edits, covered=False):
    draft = edited(name, *edits)
    return view(draft, kind=draft.scenario.telltale.kind, covered=covered)


def reward(row, value):
    return {"do": "cell", "row": row, "column": "reward", "value": value}


def test_rows_are_the_cells_as_typed_and_rewards_are_their_numbers():
    data = drawn("rejected_rows")
    assert [c[0] for c in data["columns"]] == ["prompt", "reward", "mask"]
    assert data["rows"] == [
        ["A", "100", "000"],
        ["A", "1", "111"],
        ["A", "2", "111"],
    ]
    assert data["handles"]["values"] == [100, 1, 2]
    assert data["tokens"] == 3


def test_a_panel_has_both_engines_values_and_says_where_they_differ():
    # Rows 1 and 2: (1 - 1.5) / 0.7071 and (1 - 34.333) / 56.871.
    (panel,) = drawn("rejected_rows")["panels"]
    correct, faulty = panel["engines"]
    assert correct == pytest.approx([0, -0.7071, 0.7071], abs=1e-4)
    assert faulty == pytest.approx([0, -0.5861, -0.5686], abs=1e-4)
    assert panel["text"][1] == ["0.000", "−0.586", "−0.569"]
    assert (panel["differ"], panel["flips"]) == ([1, 2], [2])


def test_brackets_show_each_engines_groups_at_their_means():
    # Prompt C has the rewards 0, 1, 2; the stride adds prompt D's 100.
    correct, faulty = drawn("partial_groups")["causes"]
    assert correct["at"][8:] == [1, 1, 1, 100]
    assert faulty["at"][8:] == [25.75] * 4
    assert len(set(correct["group"][8:])) == 2
    assert len(set(faulty["group"][8:])) == 1


def test_a_row_that_does_not_count_is_drawn_hollow_for_that_engine():
    correct, faulty = drawn("rejected_rows")["causes"]
    assert (correct["say"], faulty["say"]) == ("011", "111")
    assert correct["at"] == [1.5] * 3
    assert faulty["at"] == pytest.approx([34.3333] * 3)


def test_a_baseline_is_drawn_at_its_reward_if_rewards_are_shifted():
    # Score = (reward + 1) * 2: the mean score of 0, 1, 2 is 4, which is the
    # score of reward 1.
    draft = PageDraft(load("partial_groups"))
    changes = {"reward_bias": 1.0, "reward_scaling": 2.0}
    draft.edit(settings=replace(draft.state.settings, **changes))
    data = view(draft, kind="advantage", covered=False)
    assert data["causes"][0]["at"][8:11] == [1, 1, 1]


def test_the_second_normalization_is_an_arrow_from_the_standardized_value():
    data = drawn("double_normalization")
    correct, faulty = data["second"]
    assert correct == faulty
    assert data["panels"][0]["engines"][0] == correct


def by_rows(name, covered=False):
    """A case of tokens on a board of rows, as a game shows it."""
    draft = PageDraft(replace(load(name), lines="row"))
    return view(draft, kind="gradient", covered=covered)


def test_a_bug_in_the_trained_rows_shows_the_gradients_parts():
    data = by_rows("zero_std_kl")
    titles = [panel["title"] for panel in data["panels"]]
    assert titles == ["policy part of the gradient", "KL part of the gradient"]
    assert data["numbers"] == 1
    correct, faulty = data["causes"]
    assert (correct["say"], faulty["say"]) == ("0011", "1111")
    assert correct["counts"] == faulty["counts"] == "1111"
    assert data["panels"][1]["engines"][0][:2] == [0, 0]


def test_a_small_reward_is_drawn_at_its_value():
    data = drawn("swapped_scale", reward(0, "3e-7"), reward(1, "1e-7"))
    assert data["handles"]["values"][:2] == [3e-7, 1e-7]


@pytest.mark.parametrize("name", BUGS)
def test_while_covered_nothing_faulty_is_in_the_data(name):
    draft = edited(name, reward(0, "3"))
    answered = Progress({name: Guess(SKIPPED)})
    seen, shut = (lesson(draft, given) for given in (answered, Progress()))
    assert "verdict" in seen.pop("box") and "verdict" not in shut.pop("box")
    assert shut.pop("challenge") == {"count": seen.pop("challenge")["count"]}
    del seen["path"]
    path = shut.pop("path")
    assert path["parts"] is None
    assert all(len(stage["texts"]) == 1 for stage in path["chapters"][0]["stages"])
    for key in ("causes", "second", "windows", "lanes"):
        assert shut.pop(key, []) == seen.pop(key, [])[:1]
    shown, legend = shut.pop("legend", []), seen.pop("legend", [])
    assert all(entry in legend for entry in shown)
    for open_panel, panel in zip(seen.pop("panels"), shut.pop("panels")):
        for key in ("engines", "ghosts"):
            assert panel[key] == open_panel[key][:1]
        assert len(panel["text"]) == 1
        assert not panel["differ"] and not panel["flips"]
        assert set(panel) == set(open_panel)
    assert "Hidden: " in shut.pop("summary")
    apart = {key for key in shut if shut[key] != seen[key]}
    assert apart <= {"epoch", "covered", "numbers"}


def test_before_the_answer_the_numbers_do_not_show_which_axis_differs():
    """Zero-std KL differs in its second axis, the KL part; the first one is shown."""
    covered, seen = (by_rows("zero_std_kl", cover) for cover in (True, False))
    assert (covered["numbers"], seen["numbers"]) == (0, 1)


def test_digits_do_not_give_a_covered_number_away():
    # The engines differ in the fifth decimal only: as many are printed,
    # but not before the answer.
    edits = [reward(row, "1") for row in (8, 9, 10)]
    edits.append(reward(11, "1.00001"))
    shut = drawn("partial_groups", *edits, covered=True)
    for text in shut["panels"][0]["text"][0]:
        assert len(text.lstrip("+−")) == 5


def test_the_lists_of_the_selected_row_alone_are_sent():
    data = drawn("zero_std_kl", {"do": "select", "row": 2})
    assert set(data["lists"]) == {"logp", "ref_logp"}
    at = [c[0] for c in data["columns"]].index("logp")
    assert all(row[at] is None for row in data["rows"])


def test_an_edit_of_twelve_rows_is_answered_in_four_kilobytes():
    data = drawn("partial_groups", reward(10, "3.25"))
    assert len(json.dumps(data)) < 4000


# Whatever is done to the board: its picture, the state and the link agree

PLAIN = ("rejected_rows", "partial_groups", "double_normalization")
ROWS = st.integers(-1, 5)
ANY_EDIT = st.fixed_dictionaries(
    {
        "do": st.sampled_from([*ACTS, *["cell"] * 8]),
        "row": ROWS,
        "to": ROWS,
        "column": st.sampled_from([*["reward"] * 4, "prompt", "t1", "eos"]),
        "value": st.sampled_from(["1", "-2.5", "1e9", "1,5", "", "B", True]),
        "start": st.integers(0, 2),
        "stop": ROWS,
        "text": st.sampled_from(["1\n2\n3", "B\t4", "", "x"]),
        "tokens": st.integers(1, 5),
        "at": st.integers(0, 9),
    },
    optional={"gesture": st.integers(0, 2)},
)


@given(st.sampled_from(PLAIN), st.lists(ANY_EDIT, max_size=25))
def test_picture_state_and_link_agree_after_any_edits(name, edits):
    draft = edited(name, *edits)
    shared = link.decode(link.encode(draft.state, False)).state
    comparison = compared(shared)
    data = view(draft, kind=draft.scenario.telltale.kind, covered=False)
    assert len(data["rows"]) == comparison.batch.rows and not data["stale"]
    wanted = (comparison.correct.advantage, comparison.faulty.advantage)
    for values, trace in zip(data["panels"][0]["engines"], wanted):
        shown = [float("inf") if v is None else v for v in values]
        assert shown == pytest.approx(trace.tolist(), rel=1e-5, abs=1e-6)
    at = [column[0] for column in data["columns"]].index("reward")
    assert [row[at] for row in data["rows"]] == list(draft.state.table["reward"])


# Edits that a browser posts to the server, and the answers to them


def posted(epoch, body):

    async def receive():
        return {"type": "http.request", "body": body}

    scope = {"type": "http", "method": "POST", "headers": []}
    scope["path_params"] = {"epoch": epoch}
    answer = answered(component.answer(Request(scope, receive)))
    return answer.status_code, answer.body.decode()


def asked(epoch, query):
    scope = {"type": "http", "method": "GET", "headers": []}
    scope |= {"path_params": {"epoch": epoch}, "query_string": query}
    answer = answered(component.answer(Request(scope)))
    return answer.status_code, answer.body.decode()


def test_a_batch_too_long_for_a_link_says_so_and_gives_its_rows(visit):
    page = visit("partial_groups")
    epoch = page.board["epoch"]
    assert asked(epoch, b"as=link") == (200, "")
    draft = component.OPEN[epoch]
    for row in range(400):
        draft.take({"do": "add", "row": 11})
        value = f"{0.618033988749895 * row % 1:.12f}"  # digits that nothing packs
        draft.take({"do": "cell", "row": 11, "column": "reward", "value": value})
    status, why = asked(epoch, b"as=link")
    assert status == 200 and "only 2000 are safe to send" in why
    status, rows = asked(epoch, b"as=rows")
    assert status == 200 and len(rows.splitlines()) == 413
    fresh = PageDraft(load("partial_groups"))
    fresh.take({"do": "replace", "text": rows})
    assert fresh.state.table.values() == draft.state.table.values()
    assert asked(epoch, b"as=faulty")[0] == 404


def sent(page):
    """Posts the page's next edit. What the board is to show."""
    data = page.board
    edits = [{"n": data["ack"] + 1, **reward(11, "0")}]
    body = json.dumps({"epoch": data["epoch"], "edits": edits}).encode()
    status, text = posted(data["epoch"], body)
    assert status == 200
    return json.loads(text)


def test_the_answer_to_an_edit_is_what_the_page_draws_next(visit):
    page = visit("partial_groups")
    found = sent(page)
    # Rows 8 to 11 are 0 1 2 0: mean 0.75, std sqrt(2.75 / 3) (+ 1e-5).
    faulty = found["panels"][0]["engines"][1]
    assert faulty[8:] == pytest.approx([-0.783341, 0.261114, 1.305569, -0.783341])
    assert found["rows"][11][1] == "0" and found["ack"] == 1
    drawn = page.run().board
    assert drawn.pop("version") > found.pop("version")
    assert drawn == found


HALF = json.dumps({"edits": [{"n": 1, **reward(11, "\ud800")}]}).encode()
"""Half of a surrogate pair: it can be read, but no answer can hold it."""
MANY = json.dumps({"edits": [{"n": 1, **reward(11, "0")}] * 20_000}).encode()


def test_a_draft_that_no_session_has_is_not_found():
    assert posted("nobody", b"[" * 100_000)[0] == 404


@pytest.mark.parametrize(
    "body, status",
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (MANY, 413),
        (HALF, 400),
    ],
    ids=["empty", "torn", "no text", "nested", "many", "half"],
)
def test_a_message_that_is_too_much_or_no_json_is_refused(visit, body, status):
    page = visit("partial_groups")
    assert posted(page.board["epoch"], body)[0] == status
    assert page.run().board["ack"] == 0


@pytest.mark.parametrize("body", [b"7", b"[]", b'{"edits": [3]}'])
def test_a_message_that_is_no_edit_changes_nothing(visit, body):
    page = visit("partial_groups")
    before = page.board
    status, text = posted(before["epoch"], body)
    found = json.loads(text)
    assert status == 200 and found.pop("version") > before.pop("version")
    assert found == before


def test_an_edit_waits_while_the_page_is_drawn(visit):
    page = visit("partial_groups")
    draft = page.app.session_state["drafts"]["partial_groups"]
    edit = threading.Thread(target=sent, args=(page,))
    with draft.lock:  # as a run of the page holds it
        edit.start()
        edit.join(0.2)
        assert not draft.edited
    edit.join()
    assert draft.edited


def test_crashing_the_faulty_engine_solves_the_challenge_that_asks_for_a_crash():
    ended = {"do": "cell", "row": 6, "column": "eos", "value": True}
    draft = edited("filtered_first", ended)
    assert draft.fault == "step 0: 5 rows do not divide by the group size 4"
    draft.page.challenge = len(draft.scenario.challenges) - 1
    assert challenge(draft, Progress())["solved"]
    draft.page.challenge -= 1  # which asks that the engines agree
    missing = challenge(draft, Progress())["missing"]
    assert missing == "An engine cannot compute this batch."


@pytest.mark.parametrize(
    "name, number, text",
    [
        ("no_eos_outliers", 0, "1 row differs"),  # 0 and -49.5, and the row without EOS
        ("partial_groups", 2, "4 rows differ"),  # those of prompts C and D
        ("zero_std_kl", 0, "4 tokens differ"),  # in the push, of a flat group
        ("unscored_rows", 1, "row 0: correct 0.000"),  # faulty; the correct one is 0
    ],
)
def test_a_challenge_shows_what_decides_it(name, number, text):
    draft = PageDraft(load(name))
    draft.page.challenge = number
    assert challenge(draft, Progress())["live"] == text


def test_a_divisor_is_drawn_only_if_something_divides():
    progress = Progress()
    for name, divides in (("tool_length", False), ("float32_dust", True)):
        causes = lesson(PageDraft(load(name)), progress)["causes"]
        assert ["scale" in cause for cause in causes] == [divides]


def test_pasted_groups_of_another_size_are_asked_about_in_a_sentence():
    draft = PageDraft(load("partial_groups"))
    block = "prompt\treward\n" + "\n".join(
        f"p{row // 8}\t{row % 2}" for row in range(16)
    )
    draft.take({"do": "replace", "text": block})
    words = "The pasted groups have 8 rows; the setting says 4."
    shown = view(draft, kind="advantage", covered=True)
    assert shown["regrouped"] == (8, 4, words)
    draft.take({"do": "remove", "row": 0})
    draft.take({"do": "replace", "text": block.rsplit("\n", 1)[0]})
    words = "The largest pasted group has 8 rows; the setting says 4."
    assert view(draft, kind="advantage", covered=True)["regrouped"] == (8, 4, words)


def stage_texts(name, stage, row):
    draft = PageDraft(load(name))
    draft.take({"do": "select", "row": row, "token": 0})
    chapters = path(draft, covered=False)["chapters"]
    stages = [each for chapter in chapters for each in chapter["stages"]]
    (texts,) = (each["texts"] for each in stages if each["name"] == stage)
    return texts


def test_a_row_that_is_not_trained_since_its_advantage_is_0_says_so():
    # Row 0 is the only row of its group that counts: its score is its baseline. The
    # faulty engine compares it with row 1.
    assert stage_texts("no_eos_outliers", "trained", 0) == ("no (advantage 0)", "yes")
    # A row without tokens is left out whatever its advantage is.
    assert stage_texts("rejected_rows", "trained", 0)[0] == "no"
