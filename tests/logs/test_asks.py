"""The check asks before it accuses: fifteen made logs, what each must be told,
and made logs of formulas inside and outside the space, with faults."""

from dataclasses import replace
from pathlib import Path

import formulas
import numpy as np
import pandas as pd
import promises
import pytest
from asking import named, verdict_on

from gradebook.cases import scenario
from gradebook.logs import logged_steps
from gradebook.logs.explore import step_rows
from gradebook.logs.judging import decide, gather, suspects
from gradebook.logs.judging.sentences import statement_of
from gradebook.logs.log import check, check_log

ASKS = Path(__file__).parent / "asks"

TOLD = {
    "batch-zscore.csv": (0, "correct", "a batch z-score", "Whole batch"),
    "leave-one-out-over-std.csv": (0, "correct", "leave-one-out over", ""),
    "grpo-then-whitened.parquet": (0, "correct", "GRPO, then whitened", ""),
    "prompt-drawn-twice.csv": (0, "correct", "grouped by draw", ""),
    "uid-for-each-row.csv": (0, "correct", "grouped by prompt text", ""),
    "completed-means-success.csv": (2, "asks", "If `completed` says", "No-EOS"),
    "row-for-each-turn.csv": (2, "asks", "If `trajectory_id` says", "Fan-out"),
    "padding-copies.csv": (0, "correct", "without the copies", ""),
    "float32-scores-near-1000.csv": (0, "correct", "float32 rounding", ""),
    "whole-batch-two-steps.csv": (2, "asks", "Was the run reconfigured", "Whole batch"),
    "all-zero-advantages.csv": (2, "cannot tell", "all advantages are 0", ""),
    "advantage-is-reward.csv": (2, "asks", "rewards themselves", "One uid"),
    "rounded-to-4.csv": (0, "correct", "GRPO (ddof 1", "rounded to 4 decimals"),
    "float16.parquet": (0, "correct", "GRPO (ddof 1", "stored as float16"),
    "overlong-filter.csv": (2, "asks", "If `truncated` says", "No-EOS outliers"),
}


@pytest.mark.parametrize("name", TOLD)
def test_each_made_log_gets_its_own_verdict(name):
    code, verdict, words, more = TOLD[name]
    said = check_log([ASKS / name])
    assert (said.exit_code, said.verdict) == (code, verdict)
    assert words in said.sentence and more in said.sentence


@pytest.mark.parametrize("name", ["no_eos_outliers", "rejected_rows"])
def test_declaring_how_rows_count_turns_a_question_into_a_suspect(name):
    """The column has to be named by hand, too: a guess stays a question."""
    _, _, frame = formulas.fault(5, name)
    column, ours, theirs = {
        "no_eos_outliers": ("eos", "truncated", "truncated"),
        "rejected_rows": ("length", "length", "response_length"),
    }[name]
    declared = {"estimator": "grpo", "counts": column}
    assert verdict_on(frame, declared=declared).verdict == "asks"
    trusted = {ours: theirs, column: theirs} if column == ours else {ours: theirs}
    said = verdict_on(frame, columns=trusted, declared=declared)
    assert (said.exit_code, said.bug) == (1, name)
    undeclared = verdict_on(frame, columns=trusted)
    assert (undeclared.exit_code, undeclared.bug) == (2, name)


@pytest.mark.parametrize(
    "logs, first", [(1, 0), pytest.param(20, 90_000, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("kind", promises.OLD)
def test_made_logs_get_the_expected_verdicts(kind, logs, first):
    """At least 95 % of those inside the space by their name, and no promise
    broken. `tests/bench/check.py promises` measures more."""
    logs *= 2 if kind == "inside" else 1
    right, broken = promises.measured(kind, logs, first)
    assert right >= 0.95 * logs if kind == "inside" else right == logs
    assert broken == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", [k for k in promises.KINDS if k not in promises.OLD])
def test_several_rewards_and_what_is_left_over_accuse_nobody(kind):
    """How many are named, `tests/bench/check.py promises` measures."""
    _, broken = promises.measured(kind, 4, 90_000)
    assert broken == 0


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.long)
        if kind in ("no_eos_outliers", "float32_dust")  # the slowest
        else kind
        for kind in formulas.faulty()
    ],
)
def test_structure_proves_a_bug_and_the_check_asks_about_the_others(kind):
    bug, proved, frame = formulas.fault(1, kind)
    said = verdict_on(frame)
    if proved:
        assert (said.exit_code, said.bug) == (1, bug), said.sentence
    else:
        assert said.exit_code != 1 and bug in (said.bug, *said.asks), said.sentence


@pytest.mark.parametrize(
    "bug, drawn, seed",
    [
        ("whole_batch", "whole_batch", 304),  # a step lost a prompt
        ("filtered_first", "filtered_first", 306),  # a filter made groups short
        ("filtered_first", "filtered_first", 309),
        ("whole_batch", None, 170038),  # a step of one lone row says nothing
        ("partial_groups", "partial_groups", 2),  # only a tail mixes prompts
        ("partial_groups", "partial_groups", 60026),
        # Fifteen rewards of 4.51 and one of 5.51: -0.258223, exactly -0.258199.
        ("one_pass_variance", None, 150017),
    ],
)
def test_rare_rows_prove_a_fault(bug, drawn, seed):
    said = verdict_on(formulas.fault(seed, drawn)[2])
    assert (said.exit_code, said.bug) == (1, bug)


RAW = {name: [0.5, 1.5, 2.0, -0.7] for name in ("reward", "advantage")}
ROOT = 2**0.5 / (2 + 1e-6 * 2**0.5)  # 1 / (the deviation of 3 and 1, + 1e-6)
BY_HAND = {
    # In strides of two, 3 and 1 are one deviation of 2**0.5 apart; what is left
    # over is 2 / 1e-6.
    "a tail over eps": (
        {
            "step": [1] * 4 + [2] * 3,
            "uid": [0, 0, 1, 1, 2, 2, 3],
            "reward": [3.0, 1, 1, 3, 3, 1, 2],
            "advantage": [ROOT, -ROOT, -ROOT, ROOT, ROOT, -ROOT, 2e6],
        },
        (1, "partial_groups"),
    ),
    # Means 2/3 and 1/3: the last row of step 2 is a copy of its first, that of
    # step 1 has another length.
    "copies": (
        {
            "step": [1, 1, 1, 2, 2, 2, 2],
            "uid": [0, 1, 0, 2, 2, 3, 2],
            "reward": [1.0, 0, 1, 1, 0, 0, 1],
            "response_length": [3, 4, 5, 6, 7, 8, 6],
            "advantage": [1 / 3, -2 / 3, 1 / 3, 2 / 3, -1 / 3, -1 / 3, 2 / 3],
        },
        (0, "batch_mean/none"),
    ),
    # The rewards' means are -4 and 5; both deviations, of a population, 5**0.5.
    "missing parentheses": (
        {
            "uid": [0] * 4 + [1] * 4,
            "reward": [-1.0, -3, -5, -7, 2, 4, 6, 8],
            "advantage": [
                *(r + 4 / 5**0.5 for r in (-1, -3, -5, -7)),
                *(r - 5 / 5**0.5 for r in (2, 4, 6, 8)),
            ],
        },
        (1, "missing_parentheses"),
    ),
    # 3 of 36 columns hold 1, and the 12 tokens' squares about 1/12 add up to 31/12.
    "padding": (
        {
            "uid": [0, 0, 1, 1],
            "reward": [1.0, 1, 1, 0],
            "response_length": [1, 1, 1, 9],
            "advantage": [(r - 1 / 12) / (31 / 132) ** 0.5 for r in (1, 1, 1, 0)],
        },
        (2, "padded_mean"),
    ),
    # Rewards 1, 2, 6 weigh 1, 2, 1 tokens, so their mean is 2.75, and the deviation
    # of the four tokens with ddof 1 is the root of 14.75 / 3.
    "a guess at rejected rows": (
        {
            "uid": 0,
            "reward": [1.0, 2, 6],
            "response_length": [1, 2, 1],
            "advantage": [(r - 2.75) / (14.75 / 3) ** 0.5 for r in (1, 2, 6)],
            "accepted": [True, False, True],
        },
        (0, "reinforce_plus_plus"),
    ),
    # A share of rewards other than 0, which is 1, gives the same numbers.
    "rewards": ({"uid": [0, 0, 1, 1], **RAW}, (2, "none")),
    "lone rows": ({"uid": range(4), **RAW}, (2, "none")),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_logs_made_by_hand_get_the_expected_verdicts(name):
    columns, (code, told) = BY_HAND[name]
    said = verdict_on(pd.DataFrame({"step": 1, **columns}))
    assert said.exit_code == code and told in {said.bug, *named(said)}


def test_quarters_with_two_decimals_are_not_taken_for_rounded():
    """Rewards of 0.25 and 1 were not 0.2512 before; those of 0.33 may have been
    0.3333, which moves an advantage of Dr. GRPO by as much as a hundredth."""
    log = pd.DataFrame({"step": 1, "uid": 0, "reward": [0.25, 0.75, 1.25]})
    log["advantage"] = [-0.4951, 0.0049, 0.4902]  # Dr. GRPO's are -0.5, 0, 0.5
    assert verdict_on(log).verdict == "none fits"
    thirds = log.assign(reward=[0.33, 0.83, 1.33])
    assert verdict_on(thirds).verdict != "none fits"


def test_without_a_declaration_the_check_asks_about_a_bug_that_needs_one():
    """A variance raised to eps before the root may be what was asked for."""
    said = verdict_on(formulas.fault(5, "variance_floor")[2])
    assert (said.exit_code, said.verdict, said.bug) == (2, "asks", "variance_floor")


def test_a_wrong_declaration_is_answered_with_the_logs_computation():
    frame = formulas.fault(3, "swapped_scale")[2]  # Dr. GRPO
    said = verdict_on(frame, declared={"estimator": "grpo"})
    assert (said.exit_code, said.verdict) == (1, "other")
    assert "Dr. GRPO" in said.sentence and said.asks == ("swapped_scale",)
    right = verdict_on(frame, declared={"estimator": "dr_grpo"})
    assert (right.exit_code, right.verdict) == (0, "correct")


def test_a_computation_that_no_engine_has_can_be_declared():
    """By hand: rewards 1, 2, 3, 6 have the mean 3, which divides in MaxRL."""
    log = pd.DataFrame({"step": 1, "uid": 0, "reward": [1.0, 2.0, 3.0, 6.0]})
    said = verdict_on(
        log.assign(advantage=[-2 / 3, -1 / 3, 0, 1]), declared={"estimator": "maxrl"}
    )
    assert (said.exit_code, said.verdict) == (0, "correct")
    other = log.assign(advantage=[-2.0, -1.0, 0.0, 3.0])
    said = verdict_on(other, declared={"estimator": "maxrl"})
    assert (said.exit_code, said.verdict, said.row) == (1, "other", 3)
    assert said.correct_residual == pytest.approx(2, abs=1e-5)
    rows = step_rows(said, 1)
    assert rows.correct.tolist() == pytest.approx([-2 / 3, -1 / 3, 0, 1])
    bare = verdict_on(log, declared={"estimator": "maxrl"})
    assert (bare.exit_code, bare.verdict) == (2, "cannot tell")


def test_an_eps_that_was_declared_need_not_be_a_usual_one():
    """By hand: rewards 0, 3 have the mean 1.5 and the deviation 2.1213."""
    log = pd.DataFrame({"step": 1, "uid": 0, "reward": [0.0, 3.0]})
    log["advantage"] = [-1.5 / 2.6213203, 1.5 / 2.6213203]
    assert verdict_on(log).exit_code == 2
    said = verdict_on(log, declared={"estimator": "grpo", "eps": 0.5})
    assert (said.exit_code, said.verdict) == (0, "correct")


def test_a_question_about_rows_names_the_column_that_says_which_count():
    _, _, log = formulas.fault(5, "rejected_rows")
    kept = log["response_length"] > 0
    said = verdict_on(log.assign(accepted=kept, response_length=7))
    assert "If `accepted` says which rollouts were accepted" in said.sentence
    assert "--column accepted=accepted --declared counts=length" in said.sentence


def test_a_uid_of_each_row_leaves_prompts_to_another_column():
    """By hand: Dr. GRPO of 0 and 2, and of 1 and 4; with no other column the
    uid stays, and rows that are alone fit nothing."""
    log = pd.DataFrame({"step": [1, 1, 2, 2], "uid": range(4)})
    log["reward"], log["advantage"] = [0.0, 2.0, 1.0, 4.0], [-1.0, 1.0, -1.5, 1.5]
    both = verdict_on(log.assign(prompt_id=[7, 7, 8, 8]))
    assert (both.exit_code, both.columns["prompt"]) == (0, "prompt_id")
    assert "dr_grpo" in named(both)
    by_hand = {"prompt": "uid"}
    named_by_hand = verdict_on(log.assign(prompt_id=[7, 7, 8, 8]), columns=by_hand)
    for alone in (verdict_on(log), named_by_hand):
        assert alone.columns["prompt"] == "uid" and "dr_grpo" not in named(alone)


def test_if_nothing_fits_another_column_of_prompts_is_tried():
    """By hand: Dr. GRPO of 0, 2, 4 and of 1, 4, 4, in turns; `group` counts
    pairs of rows."""
    log = pd.DataFrame({"step": 1, "group": [0, 0, 1, 1, 2, 2]})
    log["prompt_id"], log["reward"] = [7, 8] * 3, [0.0, 1, 2, 4, 4, 4]
    log["advantage"] = [-2.0, -2, 0, 1, 2, 1]
    said = verdict_on(log)
    assert (said.exit_code, said.columns["prompt"]) == (0, "prompt_id")
    neither = verdict_on(log.assign(advantage=[-2.0, -2, 0, 1, 2, 1.5]))
    assert (neither.verdict, neither.columns["prompt"]) == ("none fits", "group")


@pytest.mark.parametrize("near, part", [(10, 50_000), (20, 80)])
def test_a_verdict_does_not_depend_on_how_a_log_is_cut(near, part, monkeypatch):
    """Twenty steps of GRPO; in the last, two decimals are all that rewards vary by."""
    monkeypatch.setattr(logged_steps, "PART", part)
    log = pd.DataFrame(
        {"step": np.repeat(range(20), 8), "uid": np.repeat(range(40), 4)}
    )
    spread = np.where(log["step"] < 20 - near, 1, 0.01)
    log["reward"] = 0.5 + spread * np.random.default_rng(3).normal(size=160)
    groups = log.groupby("uid")["reward"]
    away = log["reward"] - groups.transform("mean")
    log["advantage"] = away / (groups.transform("std") + 1e-6)
    log["reward"] = log["reward"].round(2)
    said = verdict_on(log)
    assert (said.verdict, said.exit_code) == ("cannot tell", 2)
    assert set(said.frame["verdict"]) == {"cannot tell"}
    assert "rounding of the rewards" in said.sentence


def test_groups_that_are_cut_in_parts_of_a_log_prove_the_same(monkeypatch):
    monkeypatch.setattr(logged_steps, "PART", 40)
    said = verdict_on(formulas.fault(0, "whole_batch")[2])
    assert (said.verdict, said.bug) == ("suspect", "whole_batch")


def test_the_check_of_a_frame_asks_about_a_bug_if_an_unusual_computation_fits_too():
    """OPO: means by tokens are 1/2 and 4/10; each rollout once, 2/6 and 1/7."""
    log = pd.DataFrame({"step": [0] * 3 + [1] * 3, "prompt": [0] * 3 + [1] * 3})
    log["rollout"], log["length"] = [0, 0, 1, 2, 2, 3], [2, 2, 4, 1, 3, 6]
    log["reward"] = [1.0, 1, 0] * 2
    log["advantage"] = [0.5, 0.5, -0.5, 0.6, 0.6, -0.4]
    last = check(log).iloc[1]
    assert (last["verdict"], last["bug"]) == ("asks", "fan_out")


def test_the_opposite_sign_is_said():
    frame = formulas.fault(3, "swapped_scale")[2]
    said = verdict_on(frame.assign(advantage=-frame["advantage"]))
    assert said.exit_code == 2 and "opposite sign" in said.near


RIGHT, TAIL, OTHER = (-1.0, 0.0, 1.0), (-1.0, 0.0, 0.25), (0.31, 0.9, 0.77)


@pytest.mark.parametrize(
    "groups, is_tail",
    [((RIGHT, TAIL, RIGHT, TAIL), True), ((RIGHT, RIGHT, OTHER, OTHER), False)],
)
def test_a_step_in_which_no_row_fits_is_no_tail(groups, is_tail):
    """Two steps of two groups; GRPO of 1, 2, 3 is -1, 0, 1, but for eps."""
    frame = pd.DataFrame({"step": [1] * 6 + [2] * 6, "uid": [*"aaabbbcccddd"]})
    frame["reward"] = [1.0, 2.0, 3.0] * 4
    frame["advantage"] = [advantage for group in groups for advantage in group]
    near = verdict_on(frame).near
    assert near.startswith("Near miss: ") and ("last rows" in near) == is_tail


def test_a_fit_that_rests_on_a_guessed_column_says_so():
    """A whitening over tokens fits, if the column counts tokens."""
    log = ASKS / "grpo-then-whitened.parquet"
    guessed = check_log([log])
    column = guessed.columns["length"]
    assert guessed.exit_code == 0
    assert f"This assumes that `{column}` counts the tokens" in guessed.sentence
    named_by_hand = check_log([log], columns={"length": column})
    assert "This assumes that" not in named_by_hand.sentence


def test_worst_row_is_where_the_log_departs_from_the_declaration():
    """Whatever else is in the log. By hand: GRPO of 0, 1, 5 is -0.756,
    -0.378, 1.134; Dr. GRPO is -2, -1, 3, so row 2 is off most."""
    log = pd.DataFrame({"step": [1, 1, 1, 2, 2, 2], "uid": [0, 0, 0, 1, 1, 1]})
    log["reward"] = [0.0, 1.0, 5.0, 5.0, 1.0, 0.0]
    log["advantage"] = [-2.0, -1.0, 3.0, 3.0, -1.0, -2.0]
    declared = {"estimator": "grpo"}
    whole = check(log, declared=declared)
    parts = [check(part, declared=declared) for _, part in log.groupby("step")]
    assert whole["row"].tolist() == [2, 0]
    assert pd.concat(parts)["row"].tolist() == [2, 0]
    assert whole["correct_residual"].round(3).tolist() == [1.866, 1.866]
    assert set(whole["verdict"]) == {"other"}


@pytest.fixture
def second_dust(monkeypatch):
    """A second bug whose evidence is that of Float32 dust, as a trainer's other mean
    in float32 would be."""
    dust = scenario.bug("float32_dust")
    second = replace(
        dust, name="second_dust", title="Second dust", phrase="another rounded mean"
    )
    names = (*decide.BUGS, "second_dust")

    def bug(name):
        return second if name == "second_dust" else scenario.bug(name)

    for module in (decide, gather):
        monkeypatch.setattr(module, "BUGS", names)
    for module in (gather, suspects):
        monkeypatch.setattr(module, "bug", bug)


def test_a_verdict_names_every_bug_that_explains_the_log_equally_well(second_dust):
    said = verdict_on(formulas.fault(5, "float32_dust")[2])
    assert (said.exit_code, said.verdict) == (1, "suspect")
    assert (said.bug, said.asks) == ("float32_dust", ("float32_dust", "second_dust"))
    assert said.statement.first.startswith(
        "The advantages match float32 rounding divided by itself or another rounded"
        " mean (the bug Float32 dust or Second dust, GRPO) on "
    )


def with_another(said, name):
    """The judgement, with a second bug that explains the log as well."""
    j = said.judgement
    both = (j.suspect, replace(j.suspect, bug=name))
    return replace(j, named=both, asks=both)


def test_a_question_names_every_bug_that_explains_the_log_equally_well(second_dust):
    said = verdict_on(formulas.fault(5, "variance_floor")[2])
    asked = statement_of(with_another(said, "second_dust"), {}, {})
    assert "(the bug Variance floor or Second dust, " in asked.first
    assert asked.rest[-1].endswith("it is the bug Variance floor or Second dust.")


def test_a_question_about_columns_names_each_column_with_its_bug():
    j = with_another(check_log([ASKS / "overlong-filter.csv"]), "rejected_rows")
    assert statement_of(j, {}, {"truncated": "cut", "length": "n"}).first == (
        "If `cut` says that a rollout was cut off and decides which rows count, these"
        " advantages match No-EOS outliers; if `n` is 0 for rejected rollouts and"
        " decides which rows count, these advantages match Rejected rows"
    )
