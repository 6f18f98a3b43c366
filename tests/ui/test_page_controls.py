"""Settings and the reports' own controls: each acts at once, and the
numbers follow the engine under it."""

from dataclasses import replace

import pytest
from one_a_stage import BY_STAGE

import gradebook
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
    "case, settings, correct, faulty",
    [
        # Only prompt D leaves; the tail of C is in no full stride.
        ("partial_groups", {"min_group_size": "2"}, {10: 0.99999}, {9: 1e5, 10: 2e5}),
        # RLOO: 2 - 0.5 and 2 - 101 / 3, nothing divided.
        ("partial_groups", {"estimator": "rloo"}, {10: 1.5}, {10: -31.666667}),
        # (4 - 3) / (1 + 0.5), and the second step takes the factor out.
        ("double_normalization", {"eps": "0.5"}, {0: 0.666667}, {0: 2.236068}),
        # 951 and, clipped, 1000.
        ("no_eos_outliers", {"reward_bias": "950"}, {0: 0}, {0: -24.5}),
        # Loop and vectorized RLOO part on the lone row: 0.5 and 0.
        ("rejected_rows-lone_survivor", {"estimator": "rloo"}, {0: 0.5}, {0: -7.5}),
    ],
)
def test_advantages_under_a_setting(visit, case, settings, correct, faulty):
    page = visit(case.partition("-")[0]).choose(case)
    for control, value in settings.items():
        set_to(page, control, value)
    for found, wanted in zip(page.marks(), (correct, faulty)):
        for row, value in wanted.items():
            assert found[row] == pytest.approx(value, rel=1e-5, abs=1e-6)


# The KL part of row 0 (two tokens) and row 2 (three), whose gap is ln 2:
# tokens * beta * (1 - 2) * weight.
@pytest.mark.parametrize(
    "settings, correct, faulty",
    [
        # One over all ten tokens.
        ({"beta": "0.5"}, (0, -0.15), (-0.1, -0.15)),
        ({"beta": "0"}, (0, 0), (0, 0)),
        # The mean of the row's mean: 1 / (4 rows * 2), 1 / (4 rows * 3).
        ({"loss": "grpo"}, (0, -0.01), (-0.01, -0.01)),
        ({"loss": "grpo", "accumulation": "4"}, (0, -0.0025), (-0.0025,) * 2),
        # One over the trained tokens, six or ten.
        ({"loss": "bnpo"}, (0, -0.02), (-0.008, -0.012)),
        # One over 4 rows * max_tokens, T = 3 by default.
        ({"loss": "dr_grpo"}, (0, -0.01), (-0.02 / 3, -0.01)),
        (
            {"loss": "dr_grpo", "max_tokens": "6"},
            (0, -0.005),
            (-0.01 / 3, -0.005),
        ),
        # No group is flat against the whole batch's spread.
        ({"scale": "batch_std"}, (-0.008, -0.012), (-0.008, -0.012)),
    ],
)
def test_kl_gradients_under_a_setting(visit, settings, correct, faulty):
    page = visit("zero_std_kl")
    for control, value in settings.items():
        set_to(page, control, value)
    for found, wanted in zip(page.marks(panel=1), (correct, faulty)):
        # ln 2 stands in the file with six digits.
        assert (found[0], found[2]) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(
    "bug, control, typed, message",
    [
        (
            "partial_groups",
            "eps",
            "-1",
            "eps: expected a number of 0 or more, found -1.0",
        ),
        (
            "partial_groups",
            "group_size",
            "2.5",
            "Group size: expected a whole number of 0 or more, found '2.5'",
        ),
        (
            "zero_std_kl",
            "beta",
            "1,5",
            "beta: expected a number with a decimal point, found '1,5'",
        ),
    ],
)
def test_a_bad_setting_gets_its_message(visit, bug, control, typed, message):
    page = visit(bug)
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
