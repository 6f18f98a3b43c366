"""The reports' own controls: each acts at once."""

import pytest


@pytest.mark.parametrize("case, detector", [("", False), ("-longest", True)])
def test_a_case_starts_with_the_detector_it_asks_for(visit, case, detector):
    page = visit("no_eos_outliers").choose(f"no_eos_outliers{case}")
    assert page.widget(f"set-eos_by_width-{page.case}").value is detector


def test_one_padding_column_changes_the_result(visit, marked):
    page = visit("no_eos_outliers").choose("no_eos_outliers-longest")
    flagged = [marked([-1, 0, 1]), marked([-1 / 3, 0, 5 / 3])]
    assert page.marks() == flagged
    page.put(f"width-{page.case}", 5)
    assert page.marks() == [marked([-1 / 3, -4 / 3, 5 / 3])] * 2
    assert page.table["eos"] == [True] * 3
    page.put(f"width-{page.case}", 4)
    assert page.marks() == flagged
    assert page.table["eos"] == [True, False, True]


def test_without_the_detector_padding_changes_nothing(visit, marked):
    page = visit("no_eos_outliers")
    for width in (4, 7, 3):
        page.put("width-no_eos_outliers", width)
        assert page.marks() == [marked([0, 0]), marked([-49.5, 0])]
        assert sum(name.startswith("t") for name in page.table) == width


def test_the_padded_width_stops_at_the_longest_row(visit):
    width = visit("no_eos_outliers").widget("width-no_eos_outliers")
    assert width.min == 3


def test_the_detector_overrules_the_eos_column(visit, marked):
    page = visit("no_eos_outliers").cell(1, eos=True)
    assert page.marks() == [marked([-49.5, 49.5])] * 2
    page.put("set-eos_by_width-no_eos_outliers", True)
    assert page.marks() == [marked([0, 0]), marked([-49.5, 0])]
    assert page.board["locked"] == ["eos"]
    page.put("set-eos_by_width-no_eos_outliers", False)
    assert page.table["eos"] == [True, True]
    assert page.marks() == [marked([-49.5, 49.5])] * 2


# Seven of the twelve kept transitions carry +1 and five -1; by transition
# 13 of the 26 do, by episode four of the eight.
@pytest.mark.parametrize(
    "how, wins, loses",
    [
        ("none", 1, -1),
        ("rows", 1, -1),
        ("steps", 1, -1),
        ("kept_steps", 0.845154, -1.183216),
    ],
)
def test_what_the_second_normalization_runs_over(visit, how, wins, loses):
    page = visit("double_normalization")
    page.choose("double_normalization-subsample")
    page.put(f"set-second_over-{page.case}", how)
    correct, faulty = page.marks()
    # Row 1 kept no transition: no mark on either side, whichever way.
    assert list(correct) == list(faulty) == [0, 2, 3, 4, 5, 6, 7]
    for row in (0, 3, 4, 5):
        assert correct[row] == pytest.approx(1)
        assert faulty[row] == pytest.approx(wins, abs=1e-6)
    for row in (2, 6, 7):
        assert correct[row] == pytest.approx(-1)
        assert faulty[row] == pytest.approx(loses, abs=1e-6)
    (panel,) = page.board["panels"]
    assert panel["flips"] == [] and panel["text"][0][1] == "no value"


def test_evaluation_blanks_the_loss_of_the_fix(visit):
    page = visit("zero_std_kl")

    def losses():
        stages = {stage["name"]: stage for stage in page.board["path"]["stages"]}
        return stages["loss"]["correct"], stages["loss"]["faulty"]

    # Without the guard ten tokens, with it the six of prompt B.
    assert losses() == ("0.00736", "0.01227")
    page.put("set-evaluation-zero_std_kl", True)
    # One row a prompt, two and three tokens, each at 0.04 * 0.306853 / 5.
    assert losses() == ("0.00000", "0.01227")
    correct, faulty = page.marks(panel=1)
    assert faulty[0] == pytest.approx(-0.016, abs=1e-6)
    assert faulty[2] == pytest.approx(-0.024, abs=1e-6)
    assert correct[0] == correct[2] == 0
    page.put("set-skip_flat-zero_std_kl", "training")
    correct, faulty = page.marks(panel=1)
    assert correct == faulty
    page.put("set-evaluation-zero_std_kl", False)
    assert page.marks(panel=1)[0][0] == 0


def test_the_sandbox_shows_other_numbers_beside_bugs_that_clash(visit):
    """Two bugs of one stage draw no board, so nothing of it is redrawn."""
    page = visit("sandbox").choose("sandbox-zero_std_kl")
    kind = f"kind-{page.case}"
    other = "sign" if page.widget(kind).value != "sign" else "gradient"
    before = page.board["panels"]
    page.put(kind, other)
    assert page.board["panels"] != before
    page.put(f"bugs-{page.case}", ["partial_groups", "filtered_first"])
    assert page.errors and not page._boards
    page.put(kind, "sign" if other == "gradient" else "gradient")
    assert page.errors
