"""Settings, controls and edits of a page: each acts at once, the numbers follow
the engine, and nothing is lost."""

from dataclasses import replace

import pytest
from one_a_stage import BY_STAGE

import gradebook
from gradebook.analysis.comparison import influences
from gradebook.core.settings import CHOICES, OF_ESTIMATOR

TYPED = {
    "eps": {"0.5": 0.5, "1e-3": 1e-3},
    "beta": {"0.5": 0.5, "0": 0},
    "reward_bias": {"950": 950, "-1": -1},
    "reward_scaling": {"2": 2, "0.001": 0.001},
    "reward_clip": {"20": 20, "": None},
    "group_size": {"3": 3, "": None},
    "min_group_size": {"2": 2, "4": 4},
    "max_tokens": {"7": 7, "": None},
    "accumulation": {"4": 4},
    "micro_batch": {"1": 1, "3": 3, "": None},
    "prompts_per_step": {"1": 1, "8": 8, "": None},
    "clip_low": {"0.5": 0.5},
    "clip_high": {"0.5": 0.5},
    "dual_clip": {"3": 3, "": None},
    "off_policy_low": {"0.1": 0.1},
    "off_policy_cap": {"9": 9},
    "gamma": {"0.5": 0.5},
    "lam": {"0.25": 0.25},
    "kl_in_reward": {"0.25": 0.25},
    "overlong_limit": {"9": 9, "": None},
    "overlong_buffer": {"4": 4},
    "overlong_penalty": {"0.5": 0.5},
}
FIRST = {
    control: bug
    for bug in reversed([*BY_STAGE.values(), *gradebook.BUGS])
    for control in gradebook.load(bug).controls
    if control != "padded_width"
}
"""Each setting, and the first page that has a widget for it."""


def values_of(control):
    """{what the widget is set to: the settings that this changes}."""
    if control == "estimator":
        return {
            name: {part: settings[part] for part in OF_ESTIMATOR}
            for name, settings in gradebook.ESTIMATORS.items()
        }
    chosen = {value: value for value in CHOICES.get(control, (True, False))}
    return {v: {control: to} for v, to in TYPED.get(control, chosen).items()}


def set_to(page, control, value):
    return page.put(f"set-{control}-{page.case}", value)


@pytest.mark.parametrize("control, bug", FIRST.items())
def test_every_setting_reaches_both_engines(visit, numbers, marked, bug, control):
    page = visit(bug)
    for value, settings in values_of(control).items():
        set_to(page, control, value)
        for panel, sides in enumerate(numbers(bug, **settings)):
            assert page.marks(panel) == [*map(marked, sides)], f"{control} {value}"
        assert not page.errors


def test_a_bad_setting_gets_its_message(visit):
    page = visit("partial_groups")
    good, before = page.marks(), page.setting("group_size")
    set_to(page, "group_size", "2.5")
    message = "Group size: expected a whole number of 0 or more, found '2.5'"
    assert page.errors == [message] and message in page.text
    assert page.marks() == good and not page.stale
    assert page.setting("group_size") == "2.5"
    set_to(page, "group_size", before)
    assert page.errors == [] and not page.stale and page.marks() == good


def test_an_engines_error_is_shown_with_the_last_good_numbers(visit):
    page = visit("rejected_rows")
    page.cell(1, t1=False, t2=False, t3=False).cell(2, t2=False, t3=False)
    good = page.marks()
    set_to(page, "estimator", "reinforce_plus_plus_baseline")
    (message,) = page.errors
    assert "2 unmasked tokens or more, found 1" in message and page.stale
    assert page.marks() == good
    set_to(page, "estimator", "grpo")
    assert page.errors == [] and not page.stale


def test_the_estimator_names_the_current_settings(visit):
    page = visit("partial_groups")
    assert page.setting("estimator") == "custom"
    set_to(page, "estimator", "grpo_vectorized")
    assert page.setting("eps") == "1e−6"
    assert page.setting("lone_row") == "raw"
    set_to(page, "eps", "0.25")
    assert page.setting("estimator") == "custom"
    set_to(page, "eps", "1e−6")
    assert page.setting("estimator") == "grpo_vectorized"


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


def test_a_setting_of_a_link_that_has_no_field_is_named(visit):
    page = visit("partial_groups")
    draft = page.app.session_state["drafts"]["partial_groups"]
    assert "without a field" not in page.text
    settings = replace(draft.state.settings, reward_clip=1.0, group_size=2)
    draft.edit(settings=settings)
    assert (
        "Changed by the link, without a field here: Reward clip 1." in page.run().text
    )


# The reports' own controls


def test_one_padding_column_changes_what_the_detector_sees(visit, marked):
    page = visit("no_eos_outliers").choose("no_eos_outliers-longest")
    flagged = [marked([-1, 0, 1]), marked([-1 / 3, 0, 5 / 3])]
    assert page.marks() == flagged
    page.put(f"width-{page.case}", 5)
    assert page.marks() == [marked([-1 / 3, -4 / 3, 5 / 3])] * 2
    assert page.table["eos"] == [True] * 3
    page.put(f"width-{page.case}", 4)
    assert page.marks() == flagged
    assert page.table["eos"] == [True, False, True]


def test_the_detector_overrules_the_eos_column(visit, marked):
    page = visit("no_eos_outliers").cell(1, eos=True)
    assert page.widget("width-no_eos_outliers").min == 3  # the longest row
    page.put("width-no_eos_outliers", 7).put("width-no_eos_outliers", 3)
    assert page.marks() == [marked([-49.5, 49.5])] * 2
    page.put("set-eos_by_width-no_eos_outliers", True)
    assert page.marks() == [marked([0, 0]), marked([-49.5, 0])]
    assert page.board["locked"] == ["eos"]
    page.put("set-eos_by_width-no_eos_outliers", False)
    assert page.table["eos"] == [True, True]
    assert page.marks() == [marked([-49.5, 49.5])] * 2


def test_the_map_is_two_tables(visit):
    page = visit("partial_groups").end("deeper").open("influence")
    assert not page.app.dataframe
    page.put("numbers-map-partial_groups", True)
    batch = gradebook.load("partial_groups").batch()
    maps = influences(gradebook.bug("partial_groups").engine, batch)
    correct, faulty = (frame.value for frame in page.app.dataframe)
    for shown, matrix in ((correct, maps.correct), (faulty, maps.faulty)):
        assert shown.to_numpy() == pytest.approx(matrix.numpy(), abs=1e-9)
    # TRUTH: row 11's reward moves row 10 by -1.79, faulty.
    assert faulty.to_numpy()[10, 11] == pytest.approx(-1.785, abs=1e-3)


# Edits


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_down_to_one_row_and_up_again(visit, bug):
    page = visit(bug).paste("3\n0")
    page.press("remove").press("remove")
    assert page.table["reward"] in (["3"], ["0"])
    assert page.board["notes"] == ["table: expected 1 to 1000 rows, found 0"]
    page.cell(0, reward="0").press("add")
    assert page.table["reward"] == ["0", "0"]
    # A bug whose engine needs whole groups refuses two rows.
    refused = [said for said in page.errors if "do not divide" in said]
    assert page.errors == refused
    assert refused or list(page.marks()[0]) == [0, 1]
    page.cell(1, reward="4")
    # The copy of a row with a rollout is a piece of it, and has its reward.
    first = "4" if "rollout" in page.table else "0"
    assert page.table["reward"] == [first, "4"] and page.errors == refused


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
    page = visit("partial_groups").cell(11, reward="0").cell(10, reward="1,500")
    page.put("set-eps-partial_groups", "0.5")
    edited = page.marks()
    page.choose("partial_groups-tail").choose("partial_groups")
    assert page.marks() == edited
    page.go("rejected_rows").go("partial_groups")
    assert page.marks() == edited
    assert page.table["reward"][11] == "0"
    assert page.setting("eps") == "0.5"
    assert page.board["refused"]["10 reward"][0] == "1,500"


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
