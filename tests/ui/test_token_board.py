"""A board whose lines are tokens: what it is given to draw, and what edits do to it."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gradebook.analysis.comparison import compare
from gradebook.analysis.token_formula import factors, worked_token
from gradebook.bugs import swap
from gradebook.cases.edits import set_tokens
from gradebook.cases.link import decode, encode
from gradebook.cases.scenario import load, names
from gradebook.cases.state import start
from gradebook.core.errors import GradebookError
from gradebook.ui.board import component
from gradebook.ui.board.lesson import lesson
from gradebook.ui.board.view import view
from gradebook.ui.parts.drafts import SKIPPED, PageDraft, Progress

SVG = "{http://www.w3.org/2000/svg}"
TOKENS = [name for name in names() if load(name).lines != "row"]


def drawn(case, *edits, covered=False):
    draft = PageDraft(case)
    for edit in edits:
        draft.take(edit)
    return view(draft, kind="", covered=covered)


def revealed(name, *edits):
    draft, progress = PageDraft(load(name)), Progress()
    progress.answer(name, SKIPPED)
    for edit in edits:
        draft.take(edit)
    return lesson(draft, progress)


def test_each_token_has_a_line_and_the_push_of_both_engines():
    # Prompt A is flat: only the KL is left, 0.04 * (exp(ln 2) - 1) a token.
    # N is 10, so a token weighs 1 / 10. Prompt B: 0.707 + 0.04 and -0.707 + 0.04.
    data = drawn(load("zero_std_kl"))
    assert [line[:3] for line in data["lines"][:5]] == [
        [0, 0, 0],
        [0, 1, 1],
        [1, 0, 0],
        [1, 1, 1],
        [2, 0, 0],
    ]
    (panel,) = data["panels"]
    correct, faulty = panel["engines"]
    assert correct[0] == 0 and faulty[0] == pytest.approx(0.04, abs=1e-6)
    assert correct[4] == faulty[4] == pytest.approx(0.747, abs=1e-3)
    assert panel["differ"] == [0, 1, 2, 3]
    assert data["summary"] == "4 of 10 tokens differ in push."
    assert data["handles"]["column"] == "logp"
    assert data["ticks"][0][1][0] == pytest.approx(-0.693147)


def test_many_equal_neighbours_are_one_line_until_one_of_them_is_selected():
    case = load("micro_batch_means")
    data = drawn(case)
    assert data["tokenNames"] == ["0", "1", "0", "1", "0 to 7", "0 to 7"]
    opened = drawn(case, {"do": "select", "row": 2, "token": 3})
    assert opened["tokenNames"][4:12] == [str(token) for token in range(8)]
    assert opened["tokenNames"][12] == "0 to 7"
    # A token that is unlike its neighbours has a line of its own.
    edit = {"do": "tokens", "row": 3, "start": 4, "stop": 5, "column": "logp"}
    apart = drawn(case, edit | {"value": "-2"})
    assert apart["tokenNames"][5:8] == ["0 to 3", "4", "5 to 7"]


def test_lines_with_one_denominator_share_a_lane():
    # Passes of 4 and 16 tokens, each half of the loss: 1 / 8 and 1 / 32 a token.
    correct, faulty = drawn(load("micro_batch_means"))["lanes"]
    assert correct == [[0, 5, "\u00f7 20"]]
    assert faulty == [[0, 3, "\u00f7 8"], [4, 5, "\u00f7 32"]]


@pytest.mark.parametrize("name", TOKENS)
def test_a_covered_board_knows_nothing_of_the_faulty_engine(name):
    case = load(name)
    honest = replace(case)
    draft = PageDraft(honest)
    shown = lesson(draft, Progress())
    assert all(len(panel["engines"]) == 1 for panel in shown["panels"])
    assert all(len(panel["text"]) == 1 for panel in shown["panels"])
    assert all(len(shown.get(key, [])) <= 1 for key in ("causes", "windows", "lanes"))
    assert shown["panels"][0]["differ"] == [] == shown["panels"][0]["flips"]
    for chapter in shown["path"]["chapters"]:
        for stage in chapter["stages"]:
            assert len(stage["texts"]) == 1 and len(stage.get("slopes", [""])) == 1


@pytest.mark.parametrize("name", TOKENS)
def test_the_lines_keep_their_places_when_the_answer_comes(name):
    before, after = lesson(PageDraft(load(name)), Progress()), revealed(name)
    for key in ("lines", "tokenNames", "masked", "handles", "causeAxis"):
        assert before.get(key) == after.get(key)
    verdict = after["box"]["verdict"]["values"]
    row, token = after["box"]["row"], after["box"]["token"]
    place = [[n[0], n[1]] for n in after["lines"]].index([row, token])
    engines = after["panels"][0]["engines"]
    assert verdict == pytest.approx([engines[0][place], engines[1][place]], abs=1e-6)


def test_a_line_shows_where_a_weight_with_a_slope_reverses_the_push():
    # The push is A w (1 + logp): 0 at logp -1, whatever the weight is. A weight that is
    # capped is a constant, and reverses nothing.
    data = drawn(load("live_weight"))
    assert data["turns"][0] == [None] * 6
    assert data["turns"][1] == pytest.approx([-1] * 6)
    assert ["turn", "faulty push is 0 here, and reversed to the left"] in data["legend"]
    edit = {"do": "tokens", "row": 0, "start": 0, "stop": 1, "column": "behaviour_logp"}
    capped = drawn(load("live_weight"), edit | {"value": "-1.5"})
    assert capped["turns"][1][0] is None  # e > 2, the cap
    halved = drawn(load("live_weight"), edit | {"value": "0"})
    assert halved["turns"][1][0] == pytest.approx(-1)
    assert "turns" not in drawn(load("live_weight"), covered=True)
    # One handle alone would change the weight as well.
    alone = replace(load("live_weight"), drag=("logp",))
    assert "turns" not in drawn(alone)


def test_returns_share_an_axis_only_with_numbers_of_their_kind():
    # Correct returns 1 and 0, faulty -1: the axis has room for half as much again.
    own = drawn(load("tool_text"))["causeAxis"]
    assert own == {"title": "return", "low": -1.5, "high": 1.5, "unit": None}
    # A question that offers a return of 3 has an axis that holds it.
    asked = lesson(PageDraft(load("tool_text")), Progress())
    assert asked["causeAxis"] == own | {"low": -3, "high": 3}
    assert [choice["place"] for choice in asked["box"]["choices"]] == [1, 0, -0.9, 2.9]
    assert drawn(load("tool_text"))["handles"]["axis"]["high"] == 0
    for name in ("tool_wall", "padding_value"):  # rewards, and a critic's values
        assert "causeAxis" not in drawn(load(name))


def test_the_path_opens_the_chapter_of_the_bug_and_ends_with_the_push():
    path = revealed("micro_batch_means")["path"]
    assert [chapter["open"] for chapter in path["chapters"]] == [False, False, True]
    assert path["parts"] == "weight"
    stages = {s["name"]: list(s["texts"]) for s in path["chapters"][2]["stages"]}
    assert stages["weight"] == ["1 / 20", "1 / 8"]
    assert stages["push"] == ["+0.866", "+2.165"]


def test_a_token_is_edited_undone_and_selected():
    draft = PageDraft(load("zero_std_kl"))
    edit = {"do": "tokens", "row": 2, "start": 1, "stop": 2, "column": "logp"}
    draft.take(edit | {"value": "-0.5"})
    assert draft.state.table["logp"][2] == "-1.386294 -0.5 -1.386294"
    draft.undo()
    assert draft.state.table["logp"][2] == "-1.386294 -1.386294 -1.386294"
    draft.take(edit | {"value": "x"})
    assert draft.refused["2 1 2 logp"][0] == "x" and not draft.edited
    draft.take({"do": "select", "row": 3, "token": 2})
    assert (draft.state.row, draft.state.token) == (3, 2)
    draft.take({"do": "select", "row": 3, "token": 99})
    assert draft.state.token == 2


def test_a_number_of_a_list_that_cannot_be_read_is_named_with_its_token():
    edit = {"do": "cell", "row": 1, "column": "logp", "value": "-1 x"}
    data = drawn(load("kl_sign"), edit)
    words = "logp, row 1, token 1: expected a number, found 'x'"
    assert data["refused"]["1 logp"] == ("-1 x", words)


def test_columns_that_are_dragged_together_keep_their_distance():
    case = replace(load("zero_std_kl"), drag=("logp", "ref_logp"))
    state = set_tokens(start(case), 0, 1, 2, "logp", "-1")
    assert state.table["logp"][0].split()[1] == "-1"
    # 0.386294 further, as logp.
    assert state.table["ref_logp"][0].split()[1] == "-0.306853"
    state = set_tokens(start(case), 0, 1, 2, "ref_logp", "-1")
    assert state.table["logp"][0].split()[1] == "-1.386294"


@pytest.mark.parametrize(
    "row, start_, stop, column",
    [(0, 2, 9, "logp"), (9, 0, 1, "logp"), (0, 0, 1, "eos")],
)
def test_tokens_that_are_not_there_are_refused(row, start_, stop, column):
    with pytest.raises(GradebookError):
        set_tokens(start(load("zero_std_kl")), row, start_, stop, column, "-1")


def test_a_link_keeps_the_selected_token():
    draft = PageDraft(load("zero_std_kl"))
    draft.take({"do": "select", "row": 3, "token": 2})
    query = encode(draft.state, covered=False)
    assert query["token"] == "2"
    assert decode(query).state.token == 2
    assert "token" in decode(query | {"token": "7"}).problem


@pytest.mark.parametrize("name", TOKENS)
def test_the_factors_of_a_push_give_the_push(name):
    case = load(name)
    both = compare(swap(case.bug), case.batch())
    if both.batch.logp is None or both.batch.settings.ratio == "sequence":
        pytest.skip("no push, or one that other tokens of the row enter")
    for trace in (both.correct, both.faulty):
        for row, token in both.batch.mask.nonzero().tolist():
            f = factors(both.batch, trace, row, token)
            made = (f.praise * f.off_policy + f.from_weight - f.leash) * f.share
            assert made * f.trains == pytest.approx(f.push, abs=1e-6)


def test_the_formula_of_a_token_ends_with_the_headline():
    case = load("micro_batch_means")
    both = compare(swap(case.bug), case.batch())
    correct, faulty = worked_token(both, 0, 0)
    assert "".join(part.text for part in correct[0]) == "0.866 \u00d7 1.000 = +0.866"
    assert "".join(part.text for part in faulty[0]) == "0.866 \u00d7 2.500 = +2.165"
    assert [part.text for part in faulty[0] if part.differs] == ["2.500", "+2.165"]
    case = load("zero_std_kl")
    both = compare(swap(case.bug), case.batch())
    correct, faulty = worked_token(both, 0, 0)
    assert "does not train the row" in correct[0][1].text
    assert "".join(part.text for part in faulty[0]) == "0.000 + 0.040 = +0.040"


# The saved picture


def words_of_the_picture(name, covered):
    draft, progress = PageDraft(load(name)), Progress()
    if not covered:
        progress.answer(name, SKIPPED)
    draft.channel.board = lambda: lesson(draft, progress)
    picture = ElementTree.fromstring(component._drawn(draft, "http://here"))
    return [text.text for text in picture.iter(f"{SVG}text")]


def test_a_saved_picture_has_a_line_for_each_token_with_the_push_of_both_engines():
    # A = 0.5 and -0.5; the faulty push is A (1 + logp) at logp -0.5, -1 and -2.
    words = words_of_the_picture("live_weight", covered=False)
    beside = [word for word in words if word and word.startswith("logp ")]
    assert beside == [
        "logp −0.5: +0.500 → +0.250",
        "logp −1: +0.500 → 0.000",
        "logp −2: +0.500 → −0.500",
        "logp −0.5: −0.500 → −0.250",
        "logp −1: −0.500 → 0.000",
        "logp −2: −0.500 → +0.500",
    ]
    assert [word for word in words if word and word.startswith("row ")] == [
        f"row {row}, token {token}" for row in range(2) for token in range(3)
    ]
    assert "less likely ← push → more likely" in words
    assert words.count("FLIP") == 2


def test_a_saved_picture_names_folded_tokens_and_leaves_masked_ones_without_a_number():
    words = words_of_the_picture("borrowed_mask", covered=False)
    assert words[words.index("row 0, tokens 0 to 2") + 1] == "row 0, token 3"
    assert words[words.index("row 2, tokens 4 to 6") + 1] == "reward 0: −0.707 → −0.707"


@pytest.mark.parametrize("name", TOKENS)
def test_every_token_board_is_saved_and_keeps_the_faulty_engine_covered(name):
    if not load(name).variant:
        assert not any(
            "→ +" in (word or "") for word in words_of_the_picture(name, True)
        )
    assert words_of_the_picture(name, False)


@pytest.mark.parametrize("setting", [("surrogate", "cispo"), ("ratio", "sequence")])
def test_a_clip_window_is_drawn_only_if_its_edge_can_stop_a_token(setting):
    """CISPO clips a weight, and the ratio of a sequence belongs to all its tokens."""
    name, value = setting
    case = load("moving_anchor")
    assert "windows" in drawn(case)
    edit = {"do": "setting", "name": name, "value": value}
    data = drawn(case, edit)
    assert not data["notes"] and "windows" not in data
    assert all(kind != "window" for kind, _ in data["legend"])
