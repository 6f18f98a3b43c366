"""False alarms are data that is checked when it is read, and a seed deals
them out among real bugs."""

import re

import pytest

import gradebook
from gradebook.cases.reports import FOLDER, ROUNDS, UNSETTLED, Alarm, alarms, game
from gradebook.cases.scenario import names
from gradebook.cases.schema import read_part
from gradebook.core.errors import GradebookError

SEEDS = [f"seed{n}" for n in range(40)]
WRONG = [
    (r"\A", "claimed = 'x'\n", "key 'claimed': Unexpected keyword"),
    (r"\A", "focus = 9\n", "key 'focus': expected 0 to 4"),
    (r"^status = .*", "status = 'maybe'", "key 'status': Input should be 'open'"),
    (r"^eps = .*", "eps = -1", "key 'settings.eps': expected a number of 0"),
    (r"^says = ", "bug = 'unknown'\nsays = ", "evidence[0].bug"),
    (r"^says = ", "settings = {scale = 'x'}\nsays = ", "evidence[0].scale"),
    (r"^says = ", "rows = [{prompt = 'A'}]\nsays = ", "evidence[0].rows"),
]


def test_all_are_there_and_none_is_in_a_list_of_scenarios():
    assert len({alarm.title for alarm in alarms()}) == len(alarms()) == 24
    assert not {alarm.name for alarm in alarms()} & {*names()}


@pytest.mark.parametrize("pattern, new, says", WRONG)
def test_a_wrong_file_is_refused_with_its_place(tmp_path, pattern, new, says):
    right = (FOLDER / "extra_brackets.toml").read_text("utf-8")
    text, count = re.subn(pattern, new, right, count=1, flags=re.M)
    assert count == 1
    path = tmp_path / "wrong.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(GradebookError) as told:
        read_part(Alarm, path, name="wrong")
    assert says in str(told.value) and str(path) in str(told.value)


def test_a_report_to_several_trainers_has_the_status_of_each_if_they_differ():
    standing = {alarm.name: alarm.standing for alarm in alarms()}
    several = "verl closed · verl-agent open · Seg-Zero open"
    assert standing["extra_brackets"] == several
    assert standing["loss_is_zero"] == "TRL, open-r1 · answered"


def test_a_seed_deals_the_same_game_and_another_seed_another_one():
    games = [tuple(r.source.name for r in game(seed)) for seed in SEEDS]
    assert games[0] == tuple(r.source.name for r in game(SEEDS[0]))
    assert len({*games}) == len(SEEDS)
    assert {name for dealt in games for name in dealt} > {a.name for a in alarms()}


def test_the_number_of_bugs_in_a_game_cannot_be_counted_on():
    counts = {sum(r.is_bug for r in game(seed)) for seed in SEEDS}
    assert counts == {5, 6, 7}
    assert {len(game(seed)) for seed in SEEDS} == {ROUNDS}


def test_no_disputed_report_is_dealt_as_a_bug():
    dealt = {r.source.name for seed in SEEDS for r in game(seed) if r.is_bug}
    states = {one.state for name in dealt for one in gradebook.bug(name).status}
    assert not states & {*UNSETTLED}
    assert len(dealt) < len(gradebook.BUGS)


@pytest.mark.parametrize("report", game("a"), ids=str)
def test_an_open_question_names_no_bug_and_no_title(report):
    case = report.case(answered=False)
    said = f"{case.name} {case.title} {report.question}"
    assert case.bugs == () and report.source.name not in said
    assert report.source.title not in said
