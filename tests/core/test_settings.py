"""The settings of a trainer: their defaults, their values, the named ones."""

import math
from dataclasses import fields, replace

import pytest

from gradebook import ESTIMATORS, GradebookError, Settings
from gradebook.core.settings import KINDS, read_setting


def test_the_defaults_are_grpo_as_trl_computes_it():
    trl = {"baseline": "group_mean", "scale": "group_std", "spread_about": "mean"}
    trl |= {"ddof": 1, "lone_row": "zero", "eps": 1e-4, "loss": "dapo", "beta": 0}
    trl |= {"whiten_tokens": False, "reward_clip": None, "mask_no_eos": False}
    assert trl.items() <= dict(Settings()).items()


# verl: ddof 1, eps 1e-6, lone row raw, spread about the mean.
NAMED = {
    "grpo": ("group_mean", "group_std", "raw", False),
    "grpo_vectorized": ("group_mean", "group_std", "raw", False),
    "dr_grpo": ("group_mean", "none", "raw", False),
    "rloo": ("leave_one_out", "none", "raw", False),
    "rloo_vectorized": ("leave_one_out", "none", "zero", False),
    "opo": ("length_weighted_mean", "none", "raw", False),
    "gpg": ("group_mean", "nonzero_share", "raw", False),
    "grpo_passk": ("second_best", "group_std", "raw", False),
    "reinforce_plus_plus_baseline": ("group_mean", "none", "raw", True),
    "none": ("none", "none", "raw", False),
}


def test_the_ten_estimators_are_rows_of_the_table():
    assert list(ESTIMATORS) == list(NAMED)
    for name, (baseline, scale, lone_row, whiten) in NAMED.items():
        assert dict(ESTIMATORS[name]) == {
            **Settings(),
            "eps": 1e-6,
            "baseline": baseline,
            "scale": scale,
            "lone_row": lone_row,
            "whiten_tokens": whiten,
        }


def test_settings_are_a_mapping_of_themselves():
    settings = Settings(eps=0.5, baseline="batch_mean")
    names = [field.name for field in fields(Settings)]
    assert Settings(**settings) == settings
    assert settings["eps"] == 0.5
    assert list(settings) == list(settings.keys()) == names
    with pytest.raises(KeyError):
        settings["colour"]
    with pytest.raises(TypeError, match="colour"):
        Settings(colour="red")
    assert replace(settings, eps=1) == Settings(**{**settings, "eps": 1})


FINITE, COUNT = "a finite number", "a whole number from 1"
FLAG, NOT_NEGATIVE = "true or false", "a number of 0 or more"
SCALES = (
    "one of group_std, none, batch_std, others_std, advantage_std, nonzero_share,"
    " group_mean"
)
BAD = [
    ("scale", "std", SCALES),
    ("ddof", 2, "one of 1, 0"),
    ("ddof", True, "one of 1, 0"),
    ("eps", -1e-9, NOT_NEGATIVE),
    *(("eps", value, NOT_NEGATIVE) for value in (math.nan, math.inf, True)),
    ("reward_bias", math.nan, FINITE),
    ("beta", -0.1, NOT_NEGATIVE),
    *(("group_size", value, COUNT) for value in (2.0, True, 2**31)),
    *(("min_group_size", value, COUNT) for value in (0, None)),
    ("mask_no_eos", 1, FLAG),
    ("whiten_tokens", "yes", FLAG),
    ("reward_scaling", "2", FINITE),
    *(("reward_clip", value, "a number above 0") for value in (0, -5)),
]


@pytest.mark.parametrize("name, value, expected", BAD)
def test_a_value_that_cannot_be_used_is_refused(name, value, expected):
    with pytest.raises(GradebookError) as caught:
        Settings(**{name: value})
    error = caught.value
    assert (error.key, error.expected, error.found) == (name, expected, repr(value))


def test_edges_are_taken():
    edges = {
        "eps": 0,
        "reward_bias": -3.5,
        "reward_scaling": 0,
        "reward_clip": 1e-9,
        "group_size": 1,
        "max_tokens": None,
        "accumulation": 2**31 - 1,
    }
    assert edges.items() <= dict(Settings(**edges)).items()


def test_every_setting_has_a_kind():
    assert list(KINDS) == [field.name for field in fields(Settings)]


TYPED = [
    ("eps", " 1e-5 ", 1e-5),
    ("eps", "0.5", 0.5),
    ("ddof", "0", 0),
    ("scale", "group", "group_std"),  # TRL's scale_rewards
    ("scale", "True", "group_std"),  # verl's norm_adv_by_std_in_grpo
    ("scale", "false", "none"),
    ("baseline", "none", "none"),
    ("second_over", "none", "none"),
    ("reward_clip", "none", None),
    ("group_size", "", None),
    ("group_size", "8", 8),
    ("mask_no_eos", "yes", True),
    ("mask_no_eos", False, False),
    ("reward_bias", "\u22122", -2.0),
]


@pytest.mark.parametrize("name, typed, value", TYPED)
def test_what_a_person_types_is_read(name, typed, value):
    read = read_setting(name, typed)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    "name, typed, expected",
    [
        ("eps", "small", "a number"),
        ("eps", "-1", NOT_NEGATIVE),
        ("ddof", "2", "one of 1, 0"),
        ("group_size", "0", COUNT),
        ("min_group_size", "", "a number"),
        ("mask_no_eos", "maybe", FLAG),
    ],
)
def test_text_that_is_no_value_is_refused(name, typed, expected):
    with pytest.raises(GradebookError) as caught:
        read_setting(name, typed)
    assert (caught.value.key, caught.value.expected) == (name, expected)
