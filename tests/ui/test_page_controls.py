"""Settings and the reports' own controls: each acts at once, and the
numbers follow the engine under it."""

from dataclasses import replace

import pytest
from one_a_stage import BY_STAGE

import gradebook
from gradebook.analysis.influence import influences
from gradebook.core.errors import GradebookError
from gradebook.core.settings import CHOICES, FLAGS
from gradebook.ui.parts.words import place

ONE_STEP = ("baseline", "scale", "spread_about", "ddof", "lone_row", "eps")
SPECIAL = ("padded_width",)
TYPED = {
    "eps": ["0.5", "1e-3"],
    "beta": ["0.5", "0"],
    "reward_bias": ["950", "-1"],
    "reward_scaling": ["2", "0.001"],
    "reward_clip": ["20", ""],
    "group_size": ["3", ""],
    "min_group_size": ["2", "4"],
    "max_tokens": ["7", ""],
    "accumulation": ["4"],
    "micro_batch": ["1", "3", ""],
    "prompts_per_step": ["1", "8", ""],
}
WHOLE = ("max_tokens", "accumulation", "micro_batch", "prompts_per_step")


def values_of(control):
    if control == "estimator":
        return list(gradebook.ESTIMATORS)
    if control in FLAGS:
        return [True, False]
    return CHOICES.get(control) or TYPED[control]


def under(scenario, control, value):
    """The scenario's settings with one control set to a value."""
    settings = gradebook.load(scenario).settings
    if control == "estimator":
        chosen = gradebook.ESTIMATORS[value]
        names = (*ONE_STEP, "whiten_tokens")
        return replace(settings, **{name: chosen[name] for name in names})
    if isinstance(value, str) and control not in CHOICES:
        whole = "size" in control or control in WHOLE
        value = None if not value else (int if whole else float)(value)
    return replace(settings, **{control: value})


CONTROLS = [
    (bug, control)
    for bug in [*BY_STAGE.values(), *gradebook.BUGS]
    for control in gradebook.load(bug).controls
    if control not in SPECIAL
]
FIRST = {control: bug for bug, control in reversed(CONTROLS)}
SETTINGS = [
    pytest.param(
        bug,
        control,
        id=f"{bug}-{control}",
        marks=() if FIRST[control] == bug else pytest.mark.long,
    )
    for bug, control in dict.fromkeys(CONTROLS)
]
"""Each control on the first page that has it; on all pages under long."""


def set_to(page, control, value):
    return page.put(f"set-{control}-{page.case}", value)


def a_row(values):
    """One value a row, from one a row or one a token."""
    return values.sum(-1) if values.ndim == 2 else values


@pytest.mark.parametrize("bug, control", SETTINGS)
def test_every_setting_reaches_both_engines(visit, both, marked, bug, control):
    page, scenario = visit(bug), gradebook.load(bug)
    parts = ["advantage"]
    if scenario.telltale.kind == "gradient":
        parts = ["policy_gradient", "kl_gradient"]
        parts = parts[: 2 if "ref_logp" in scenario.rows[0] else 1]
    for value in values_of(control):
        set_to(page, control, value)
        try:
            traces = both(bug, scenario.rows, under(bug, control, value))
        except GradebookError as error:
            assert page.errors == [place(error)], f"{control} {value}"
            assert page.stale
            continue
        wanted = [
            [marked(a_row(getattr(t, part)).tolist()) for t in traces] for part in parts
        ]
        found = [page.marks(panel) for panel in range(len(wanted))]
        assert found == wanted, f"{control} {value}"
        assert not page.errors


@pytest.mark.parametrize(
    "control, typed, message",
    [
        ("eps", "-1", "eps: expected a number of 0 or more, found -1.0"),
        (
            "group_size",
            "2.5",
            "Group size: expected a whole number of 0 or more, found '2.5'",
        ),
    ],
)
def test_a_bad_setting_gets_its_message(visit, control, typed, message):
    page = visit("partial_groups")
    good, before = page.marks(), page.setting(control)
    set_to(page, control, typed)
    assert page.errors == [message] and message in page.text
    assert page.marks() == good and not page.stale
    assert page.setting(control) == typed
    set_to(page, control, before)
    assert page.errors == [] and not page.stale and page.marks() == good


def test_whitening_two_tokens_needs_two(visit):
    page = visit("rejected_rows")
    for token in ("t1", "t2", "t3"):
        page.cell(1, **{token: False})
    page.cell(2, t2=False).cell(2, t3=False)
    set_to(page, "estimator", "reinforce_plus_plus_baseline")
    (message,) = page.errors
    assert "two unmasked tokens or more, found 1" in message
    assert page.stale
    set_to(page, "estimator", "grpo")
    assert page.errors == []


def test_the_estimator_names_the_settings_that_stand(visit):
    page = visit("partial_groups")
    assert page.setting("estimator") == "custom"
    set_to(page, "estimator", "grpo_vectorized")
    assert page.setting("eps") == "1e−6"
    assert page.setting("lone_row") == "raw"
    set_to(page, "eps", "0.25")
    assert page.setting("estimator") == "custom"
    set_to(page, "eps", "1e−6")
    assert page.setting("estimator") == "grpo_vectorized"


# The reports' own controls


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
    assert page.widget("width-no_eos_outliers").min == 3  # the longest row
    for width in (4, 7, 3):
        page.put("width-no_eos_outliers", width)
        assert page.marks() == [marked([0, 0]), marked([-49.5, 0])]
        assert sum(name.startswith("t") for name in page.table) == width


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


def test_the_map_stands_as_two_tables(visit):
    page = visit("partial_groups").end("deeper").open("influence")
    assert not page.app.dataframe
    page.put("numbers-map-partial_groups", True)
    batch = gradebook.load("partial_groups").batch()
    maps = influences(gradebook.bug("partial_groups").engine, batch)
    correct, faulty = (frame.value for frame in page.app.dataframe)
    for shown, matrix in ((correct, maps.correct), (faulty, maps.faulty)):
        assert list(shown.index[9:]) == ["9 C", "10 C", "11 D"]
        assert shown.columns[11] == "by 11 D"
        assert shown.to_numpy() == pytest.approx(matrix.numpy(), abs=1e-9)
    # TRUTH: row 11's reward moves row 10 by -1.79, faulty.
    assert faulty.loc["10 C", "by 11 D"] == pytest.approx(-1.785, abs=1e-3)
