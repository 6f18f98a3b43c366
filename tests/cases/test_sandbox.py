"""The sandbox page: any start, any bugs, every setting, the whole
pipeline, every estimator."""

import pytest

import gradebook
import gradebook.cases.state
from gradebook.cases.scenario import SETTINGS, case

STARTS = [
    pytest.param(f"sandbox-{name}", marks=pytest.mark.long if "-" in name else ())
    for name in gradebook.cases.scenario.names()
]
"""The reports; their variants under long."""


@pytest.fixture
def page(visit):
    return visit("sandbox")


def test_the_blank_batch_has_every_column_and_lists_its_advantages(page):
    table = page.table
    tokens = [f"t{t}" for t in (1, 2, 3)]
    assert list(table) == [
        *("prompt", "reward", "eos", "step", "steps", "kept_steps"),
        *(*tokens, "logp", "ref_logp"),
    ]
    assert table["prompt"] == ["A"] * 4 + ["B"] * 4
    assert set(table["reward"]) == {"0", "1"}
    assert table["steps"] == table["kept_steps"] == ["1"] * 8
    assert all(all(table[t]) for t in tokens)
    assert page.marks()[0] == pytest.approx(
        dict(enumerate(case("sandbox").expected.correct)), abs=1e-6
    )


def test_every_setting_is_a_widget_and_acts(page):
    for name in SETTINGS:
        page.setting(name)
    # Deviation with ddof 0 of B: 0.433013, of A: 0.5.
    page.put("set-ddof-sandbox", 0)
    assert page.marks()[0][0] == pytest.approx(1.0, abs=1e-5)
    assert page.marks()[0][4] == pytest.approx(1.732051, abs=1e-5)
    page.put("set-estimator-sandbox", "dr_grpo")
    assert page.marks()[0][4] == pytest.approx(0.75)
    page.put("set-mask_no_eos-sandbox", True).cell(4, eos=False)
    assert page.marks()[0][4] == 0


@pytest.fixture(scope="module")
def untouched(visit):
    return visit("sandbox")


@pytest.mark.parametrize("start", STARTS)
def test_every_scenario_is_a_start_with_its_own_bug(untouched, numbers, marked, start):
    page = untouched.choose(start)
    scenario = gradebook.load(start.removeprefix("sandbox-"))
    assert page.widget(f"bugs-{start}").value == [scenario.bug]
    assert page.table["reward"] == list(scenario.table()["reward"])
    for name in SETTINGS:
        page.setting(name)
    assert not page.errors
    for panel, sides in enumerate(numbers(scenario.name)):
        assert page.marks(panel) == [*map(marked, sides)]


def test_both_faults_of_one_stage_count_every_row_and_say_so(page):
    page.choose("sandbox-rejected_rows")
    page.put(f"bugs-{page.case}", ["rejected_rows", "no_eos_outliers"])
    assert "The bugs of `counted` act together" in page.text
    assert "Swapped in the faulty engine: `counted`." in page.text
    # Mean of 100, 1 and 2; deviation 56.8712.
    assert page.marks()[1][2] == pytest.approx(-0.568536, abs=1e-6)


def test_two_bugs_of_one_stage_get_a_message_and_keep_the_edits(page):
    page.cell(0, reward="5").put("bugs-sandbox", ["partial_groups", "whole_batch"])
    (error,) = page.errors
    assert "expected one bug in the stage group, found partial_groups" in error
    page.put("bugs-sandbox", ["rejected_rows"])
    assert page.errors == [] and page.table["reward"][0] == "5"


def test_the_gradient_is_a_click_away(page):
    page.put("bugs-sandbox", ["zero_std_kl"])
    page.put("set-beta-sandbox", "0.1")
    for row in range(4):
        page.cell(row, reward="1")
    assert page.marks()[0] == page.marks()[1]
    page.put("kind-sandbox", "gradient")
    policy, kl = page.marks(0), page.marks(1)
    assert policy[0] == policy[1]
    # Three tokens of 24: 0.1 * (1 - exp(0.5)) / 24 each.
    assert kl[0][0] == 0 and kl[1][0] == pytest.approx(-0.00810902)


def address(page):
    """The address's parameters."""
    return {k: "".join(v) for k, v in page.app.query_params.items()}


def test_the_address_holds_start_bugs_cells_settings_and_row(page, visit):
    assert address(page) == {}
    page.choose("sandbox-rejected_rows")
    page.put(f"bugs-{page.case}", ["rejected_rows", "partial_groups"])
    page.cell(1, reward="7").put(f"set-eps-{page.case}", "0.5")
    page.select(1).press("add")
    sent = address(page)
    assert sent["s"] == "sandbox-rejected_rows"
    assert sent["bugs"] == "partial_groups.rejected_rows"
    back = visit("")
    back.app.query_params.update(sent)
    back.go("sandbox")
    back.case = back.widget("case-sandbox").value
    assert back.case == page.case and back.table == page.table
    bugs = back.widget(f"bugs-{back.case}").value
    assert bugs == ["partial_groups", "rejected_rows"]
    assert back.row == page.row == 2 and back.setting("eps") == "0.5"
    assert back.marks() == page.marks() and not back.app.warning
    assert address(back) == sent


def downloads(page):
    """The files that can be taken home."""
    return [b.proto.label for b in page.app.get("download_button")]


def test_one_bug_gives_every_file_and_any_other_number_says_why(page):
    assert downloads(page) == ["pytest file", "Scenario file", "CSV"]
    for bugs in (["rejected_rows", "partial_groups"], []):
        page.put("bugs-sandbox", bugs)
        assert downloads(page) == ["CSV"] and "exactly one bug" in page.text
