"""A wrong scenario file is refused: file, key, row, expected, found."""

import os
import time
from pathlib import Path

import pytest

import gradebook
from gradebook.cases.scenario import KEYS, OPTIONAL, names
from gradebook.cases.toml_file import LARGEST_FILE

FOLDER = Path(__file__).parents[2] / "scenarios"
MAIN = (FOLDER / "zero_std_kl.toml").read_text()

VARIANT = """\
title = "Mine"
bug = "rejected_rows"
kind = "shows"
claim = "A claim."
story = "One. Two. Three."
lesson = "Look."
focus = 1
rows = [
  { prompt = "A", reward = 9.0, mask = [0, 0] },
  { prompt = "A", reward = 1.0, mask = [1, 1] },
  { prompt = "A", reward = 2.0, mask = [1, 0] },
]

[settings]
eps = 1e-6

[prediction]
question = "Who?"
choices = ["You", "I"]
answer = 0
why = "So."

[expected]
correct = [0.0, "none", 1.0]
"""
ROWS = VARIANT[VARIANT.index("rows = [") : VARIANT.index("\n[settings]")]
LOGP = "mask = [1, 1], logp = [-1.0, -2.0]"
OTHER = """
[other_run]
title = "Another"
note = "A note."
rows = [
  { prompt = "A", reward = 9.0, mask = [0, 0] },
  { prompt = "A", reward = 1.0, mask = [1, 1] },
  { prompt = "A", reward = 3.0, mask = [1, 0] },
]
"""


CHALLENGED = (
    VARIANT
    + """
[[challenges]]
title = "Try."
goal = "Do."
check = "agree_by_one_reward"
hint = "Think."
solution = [{ row = 0, column = "reward", value = 1.5 }]
"""
)
SOLUTION = CHALLENGED[CHALLENGED.index("solution =") :]


def challenge(*pieces):
    """The variant with a challenge, some pieces replaced."""
    text = CHALLENGED
    for old, new in pieces:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def solution(changes):
    """The variant with a challenge of this solution."""
    return challenge((SOLUTION, f"solution = [{changes}]\n"))


def but(old, new):
    """The variant with one piece replaced."""
    assert VARIANT.count(old) == 1, old
    return VARIANT.replace(old, new)


def main_but(old, new):
    """A main file with one piece replaced."""
    assert MAIN.count(old) == 1, old
    return MAIN.replace(old, new)


def rows(*lines):
    """The variant with other rows."""
    return but(ROWS, "rows = [\n" + ",\n".join(lines) + "\n]\n")


def without(key):
    """A main file without a key at its top level."""
    lines, kept, skips, headed = MAIN.splitlines(), [], False, False
    for line in lines:
        header = line.startswith("[")
        headed = headed or header
        if header or (line[:1].isalpha() and not headed):
            skips = line.split(" ")[0].strip("[]") == key
        if not skips:
            kept.append(line)
    assert len(kept) < len(lines), key
    return "\n".join(kept)


def refused(path, text):
    """The error that loading `text` from `path` gives."""
    if isinstance(text, bytes):
        path.write_bytes(text)
    else:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(gradebook.GradebookError) as caught:
        gradebook.load(path)
    return caught.value


def check(error, path, key, row, expected, found):
    """The error has its parts, and its message holds all of them."""
    assert error.file == str(path)
    assert (error.key, error.row) == (key, row)
    assert expected in error.expected
    assert found in error.found
    message = str(error)
    assert message.startswith(str(path))
    assert f"expected {error.expected}, found {error.found}" in message
    assert not key or f"key '{key}'" in message
    assert row is None or f"row {row}" in message
    assert len(message) < 800


def test_the_files_that_the_cases_change_are_right(tmp_path):
    for name, text in (
        ("mine", VARIANT),
        ("rejected_rows-b", VARIANT + OTHER),
        ("rejected_rows-c", CHALLENGED),
        ("zero_std_kl", MAIN),
    ):
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        assert gradebook.load(path).name == name


FILE = {
    "empty": ("", "bug", "one of", "nothing"),
    "no toml at all": ("Dear reader,\n", "", "TOML", "line 1, column 6"),
    "value missing": (but("focus = 1", "focus ="), "", "TOML", "line 7,"),
    "string not closed": (
        but('"Mine"', '"Mine'),
        "",
        "TOML",
        "line 1, column 14",
    ),
    "list not closed": ("rows = [1, 2", "", "TOML", "end of document"),
    "duplicate key": (
        but('kind = "shows"', 'kind = "shows"\nkind = "face"'),
        "",
        "TOML",
        "overwrite a value (at line 4",
    ),
    "duplicate table": (
        VARIANT + "\n[settings]\n",
        "",
        "TOML",
        "twice (at line 26",
    ),
    "duplicate key in a row": (
        but("reward = 9.0", "reward = 9.0, reward = 8.0"),
        "",
        "TOML",
        "duplicate inline table key 'reward'",
    ),
    "infinity misspelt": (
        but("reward = 9.0", "reward = Infinity"),
        "",
        "TOML",
        "invalid value (at line 9",
    ),
    "decimal comma": (but("eps = 1e-6", "eps = 1,5"), "", "TOML", "line 15"),
    "leading zero": (but("focus = 1", "focus = 01"), "", "TOML", "line 7"),
    "control character": (
        but("A claim.", "A \x00 claim."),
        "",
        "TOML",
        "line 4",
    ),
    "not UTF-8": (
        but("Mine", "M\xfcne").encode("latin-1"),
        "",
        "UTF-8 text",
        "byte 0xfc at offset 10",
    ),
    "UTF-16": (VARIANT.encode("utf-16"), "", "UTF-8", "0xff at offset 0"),
    "a picture": (b"\x89PNG\r\n\x1a\n", "", "UTF-8", "0x89 at offset 0"),
    "lists nested deep": (
        "rows = " + "[" * 5000 + "]" * 5000,
        "",
        "TOML",
        "nested too deep",
    ),
    "tables nested deep": (
        "rows = " + "{a=" * 5000 + "1" + "}" * 5000,
        "",
        "TOML",
        "nested too deep",
    ),
    "a key of 400000 parts": (
        "a." * 400_000 + "a = 1",
        "",
        "at most 100 dots",
        "400000 in 'a.a.a.",
    ),
    "decimal number of 5000 digits": (
        but("focus = 1", "focus = " + "9" * 5000),
        "",
        "TOML",
        "4300 digits",
    ),
    "hexadecimal number of 5000 digits": (
        but("focus = 1", "focus = 0x" + "f" * 5000),
        "focus",
        "at most 64 bits",
        "one of 20000 bits",
    ),
}


@pytest.mark.parametrize("text, key, expected, found", FILE.values(), ids=FILE)
def test_a_file_that_is_no_scenario(tmp_path, text, key, expected, found):
    path = tmp_path / "mine.toml"
    check(refused(path, text), path, key, None, expected, found)


KEY = {
    "unknown key": (
        but('title = "Mine"', 'title = "Mine"\ntitel = "Mine"'),
        "titel",
        "nearest 'title'",
        "'titel'",
    ),
    "unknown key, like no other": (
        but("focus = 1", "focus = 1\nzzz = 1"),
        "zzz",
        "a known key, nearest '",
        "'zzz'",
    ),
    "unknown table": (
        VARIANT + "\n[challenge]\nx = 1\n",
        "challenge",
        "nearest '",
        "'challenge'",
    ),
    "unknown key in a table": (
        but("answer = 0", "answer = 0\nchoises = []"),
        "prediction.choises",
        "nearest 'choices'",
        "'choises'",
    ),
    "unknown setting": (
        but("eps = 1e-6", "epsilon = 1e-6"),
        "settings.epsilon",
        "nearest 'eps",
        "'epsilon'",
    ),
    "key of another case": (
        but("focus = 1", "Focus = 1"),
        "Focus",
        "nearest 'focus'",
        "'Focus'",
    ),
    "bug missing": (
        but('bug = "rejected_rows"\n', ""),
        "bug",
        "one of double_normalization,",
        "nothing",
    ),
    "bug unknown": (
        but('"rejected_rows"', '"rejected_row"'),
        "bug",
        "nearest 'rejected_rows'",
        "'rejected_row'",
    ),
    "bug a number": (but('"rejected_rows"', "3"), "bug", "one of", "3"),
    "title missing": (but('title = "Mine"\n', ""), "title", "text", "nothing"),
    "title empty": (but('"Mine"', '" "'), "title", "not empty", "' '"),
    "title a number": (but('"Mine"', "7"), "title", "text", "7"),
    "title a date": (
        but('"Mine"', "2026-05-22"),
        "title",
        "text",
        "datetime.date(2026, 5, 22)",
    ),
    "claim a list": (but('"A claim."', '["A"]'), "claim", "text", "['A']"),
    "kind unknown": (
        but('"shows"', '"hide"'),
        "kind",
        "one of shows, face, hides; nearest 'hides'",
        "'hide'",
    ),
    "kind a boolean": (but('"shows"', "true"), "kind", "one of", "True"),
    "focus missing": (
        but("focus = 1\n", ""),
        "focus",
        "a whole number",
        "nothing",
    ),
    "focus a float": (
        but("focus = 1", "focus = 1.0"),
        "focus",
        "a whole number",
        "1.0",
    ),
    "focus a boolean": (
        but("focus = 1", "focus = true"),
        "focus",
        "a whole number",
        "True",
    ),
    "focus a time": (
        but("focus = 1", "focus = 07:32:00"),
        "focus",
        "a whole number",
        "datetime.time(7, 32)",
    ),
    "focus past the rows": (
        but("focus = 1", "focus = 3"),
        "focus",
        "0 to 2, an index into rows",
        "3",
    ),
    "focus negative": (
        but("focus = 1", "focus = -1"),
        "focus",
        "0 to 2",
        "-1",
    ),
    "focus of 65 bits": (
        but("focus = 1", "focus = 18446744073709551616"),
        "focus",
        "at most 64 bits",
        "65 bits",
    ),
    "prediction missing": (
        VARIANT[: VARIANT.index("[prediction]")]
        + VARIANT[VARIANT.index("[expected]") :],
        "prediction",
        "a table",
        "nothing",
    ),
    "prediction a text": (
        "prediction = 'x'\n"
        + VARIANT[: VARIANT.index("[prediction]")]
        + VARIANT[VARIANT.index("[expected]") :],
        "prediction",
        "a table",
        "'x'",
    ),
    "question missing": (
        but('question = "Who?"\n', ""),
        "prediction.question",
        "text",
        "nothing",
    ),
    "one choice": (
        but('["You", "I"]', '["You"]'),
        "prediction.choices",
        "2 to 4 values",
        "1",
    ),
    "five choices": (
        but('["You", "I"]', '["1", "2", "3", "4", "5"]'),
        "prediction.choices",
        "2 to 4 values",
        "5",
    ),
    "a choice twice": (
        but('["You", "I"]', '["You", "I", "You"]'),
        "prediction.choices[2]",
        "each value once",
        "'You'",
    ),
    "a choice a number": (
        but('["You", "I"]', '["You", 2]'),
        "prediction.choices[1]",
        "text",
        "2",
    ),
    "choices a text": (
        but('["You", "I"]', '"You"'),
        "prediction.choices",
        "a list",
        "'You'",
    ),
    "answer outside the choices": (
        but("answer = 0", "answer = 2"),
        "prediction.answer",
        "0 to 1, an index into choices",
        "2",
    ),
    "answer the choice itself": (
        but("answer = 0", 'answer = "You"'),
        "prediction.answer",
        "a whole number",
        "'You'",
    ),
    "settings missing": (
        but("[settings]\neps = 1e-6\n", ""),
        "settings",
        "a table",
        "nothing",
    ),
    "settings a list": (
        but("[settings]\neps", "[[settings]]\neps"),
        "settings",
        "a table",
        "[{'eps': 1e-06}]",
    ),
    "setting of the wrong choice": (
        but("eps = 1e-6", 'baseline = "mean"'),
        "settings.baseline",
        "one of group_mean",
        "'mean'",
    ),
    "setting a text": (
        but("eps = 1e-6", 'eps = "small"'),
        "settings.eps",
        "a finite number",
        "'small'",
    ),
    "setting not finite": (
        but("eps = 1e-6", "eps = inf"),
        "settings.eps",
        "a finite number",
        "inf",
    ),
    "setting overflowing": (
        but("eps = 1e-6", "eps = 1e400"),
        "settings.eps",
        "a finite number",
        "inf",
    ),
    "setting negative": (
        but("eps = 1e-6", "eps = -1.0"),
        "settings.eps",
        "0 or more",
        "-1.0",
    ),
    "setting of 400 digits": (
        but("eps = 1e-6", "eps = 1" + "0" * 400),
        "settings.eps",
        "at most 64 bits",
        "bits",
    ),
    "ddof a boolean": (
        but("eps = 1e-6", "ddof = true"),
        "settings.ddof",
        "one of 1, 0",
        "True",
    ),
    "group size 0": (
        but("eps = 1e-6", "group_size = 0"),
        "settings.group_size",
        "a whole number from 1",
        "0",
    ),
    "flag a number": (
        but("eps = 1e-6", "mask_no_eos = 1"),
        "settings.mask_no_eos",
        "true or false",
        "1",
    ),
    "beta without log-probabilities of the reference": (
        but("mask = [1, 1]", LOGP)
        .replace("mask = [0, 0]", "mask = [0, 0], logp = [-1, -1]")
        .replace("mask = [1, 0]", "mask = [1, 0], logp = [-1, -1]")
        .replace("eps = 1e-6", "beta = 0.04"),
        "ref_logp",
        "values, since beta is not 0",
        "none",
    ),
    "unknown control": (
        "controls = ['epss']\n" + VARIANT,
        "controls[0]",
        "nearest 'eps'",
        "'epss'",
    ),
    "control twice": (
        "controls = ['eps', 'ddof', 'eps']\n" + VARIANT,
        "controls[2]",
        "each value once",
        "'eps'",
    ),
    "controls a text": (
        "controls = 'eps'\n" + VARIANT,
        "controls",
        "a list",
        "'eps'",
    ),
    "unknown estimator": (
        "estimators = ['grpo', 'reinforce']\n" + VARIANT,
        "estimators[1]",
        "nearest 'reinforce_plus_plus_baseline'",
        "'reinforce'",
    ),
    "no estimators": (
        "estimators = []\n" + VARIANT,
        "estimators",
        "1 to 100 values",
        "0",
    ),
    "a note on no estimators": (
        "estimators_note = 'Alike.'\n" + VARIANT,
        "estimators",
        "the note's list",
        "nothing",
    ),
    "status unknown": (
        "status = 'closed'\n" + VARIANT,
        "status",
        "one of fixed, open, disputed",
        "'closed'",
    ),
    "a telltale of no kind": (
        VARIANT + "\n[telltale]\nkind = 'size'\ntext = 'x'\n",
        "telltale.kind",
        "one of sign, scale, influence, gradient",
        "'size'",
    ),
    "a source without a label": (
        VARIANT + "\n[[sources]]\nurl = 'https://a.b'\n",
        "sources[0].label",
        "text",
        "nothing",
    ),
    "a source with another link": (
        VARIANT + "\n[[sources]]\nlabel='x'\nurl = 'javascript:alert(1)'\n",
        "sources[0].url",
        "https://",
        "'javascript:alert(1)'",
    ),
    "a second source with a wrong commit": (
        VARIANT
        + "\n[[sources]]\nlabel='x'\n[[sources]]\nlabel='y'\ncommit='main'\n",
        "sources[1].commit",
        "7 to 40 hex digits",
        "'main'",
    ),
    "no sources": ("sources = []\n" + VARIANT, "sources", "1 to 100", "0"),
    "half a dispute": (
        VARIANT + "\n[dispute]\nmaintainer = 'No.'\ntrap = 'x'\n",
        "dispute.other_view",
        "text",
        "nothing",
    ),
    "affected without keys": (
        VARIANT
        + "\n[affected]\ntrainer='x'\nversions='x'\nlook='x'\n"
        + "workaround='x'\n",
        "affected.keys",
        "a list",
        "nothing",
    ),
    "expected missing": (
        VARIANT[: VARIANT.index("[expected]")],
        "expected",
        "a table",
        "nothing",
    ),
    "expected empty": (
        but('correct = [0.0, "none", 1.0]\n', ""),
        "expected",
        "one or more of correct, faulty",
        "none of them",
    ),
    "expected value of another word": (
        but('"none"', '"nan"'),
        "expected.correct[1]",
        'a finite number, or "none"',
        "'nan'",
    ),
    "expected value NaN": (
        but('"none"', "nan"),
        "expected.correct[1]",
        '"none"',
        "nan",
    ),
    "expected loss without logp": (
        VARIANT + "correct_loss = 0.5\n",
        "expected.correct_loss",
        "only where the rows have logp",
        "0.5",
    ),
    "expected loss none": (
        VARIANT + 'faulty_loss = "none"\n',
        "expected.faulty_loss",
        "a finite number",
        "'none'",
    ),
    "challenges a table": (
        but("focus = 1", "focus = 1\nchallenges = { title = 'x' }"),
        "challenges",
        "a list",
        "{'title': 'x'}",
    ),
    "no challenges": (
        but("focus = 1", "focus = 1\nchallenges = []"),
        "challenges",
        "1 to 100 values",
        "0",
    ),
    "a challenge without a title": (
        challenge(('title = "Try."\n', "")),
        "challenges[0].title",
        "text",
        "nothing",
    ),
    "a challenge without a goal": (
        challenge(('goal = "Do."\n', "")),
        "challenges[0].goal",
        "text",
        "nothing",
    ),
    "a challenge without a check": (
        challenge(('check = "agree_by_one_reward"\n', "")),
        "challenges[0].check",
        "one of",
        "nothing",
    ),
    "a challenge with an unknown check": (
        challenge(("agree_by_one_reward", "agree_by_a_reward")),
        "challenges[0].check",
        "nearest 'agree_by_one_reward'",
        "'agree_by_a_reward'",
    ),
    "a challenge with an unknown key": (
        challenge(("hint =", "hints =")),
        "challenges[0].hints",
        "nearest 'hint'",
        "'hints'",
    ),
    "a challenge with an empty hint": (
        challenge(('"Think."', '" "')),
        "challenges[0].hint",
        "not empty",
        "' '",
    ),
    "two challenges of one title": (
        CHALLENGED + CHALLENGED[CHALLENGED.index("[[chall") :],
        "challenges[1].title",
        "another title",
        "'Try.'",
    ),
    "a challenge without a solution": (
        challenge((SOLUTION, "")),
        "challenges[0].solution",
        "a list",
        "nothing",
    ),
    "a solution of nothing": (
        solution(""),
        "challenges[0].solution",
        "1 to 100 values",
        "0",
    ),
    "a change that is no table": (
        solution("1"),
        "challenges[0].solution[0]",
        "a table",
        "1",
    ),
    "a change of no kind": (
        solution("{ colunm = 'reward' }"),
        "challenges[0].solution[0]",
        "one of row, setting, add_row, remove_row",
        "colunm",
    ),
    "an empty change": (
        solution("{}"),
        "challenges[0].solution[0]",
        "one of row, setting",
        "nothing",
    ),
    "a change of two kinds": (
        solution("{ row = 1, column = 'reward', value = 1, setting = 'eps' }"),
        "challenges[0].solution[0].setting",
        "a known key",
        "'setting'",
    ),
    "a change without a value": (
        solution("{ row = 1, column = 'reward' }"),
        "challenges[0].solution[0].value",
        "a finite number",
        "nothing",
    ),
    "a change of a row that is not there": (
        solution("{ row = 3, column = 'reward', value = 1 }"),
        "challenges[0].solution[0].row",
        "0 to 2, an index into rows",
        "3",
    ),
    "a change of a row that was removed before": (
        solution(
            "{ remove_row = 0 }, { row = 2, column = 'reward', value = 1 }"
        ),
        "challenges[0].solution[1].row",
        "0 to 1",
        "2",
    ),
    "a change of row -1": (
        solution("{ row = -1, column = 'reward', value = 1 }"),
        "challenges[0].solution[0].row",
        "0 or more",
        "-1",
    ),
    "a change of an unknown column": (
        solution("{ row = 1, column = 'rewards', value = 1 }"),
        "challenges[0].solution[0].column",
        "nearest 'reward'",
        "'rewards'",
    ),
    "a change of a column the rows have not": (
        solution("{ row = 1, column = 'eos', value = true }"),
        "challenges[0].solution[0].column",
        "one of prompt, reward, mask",
        "'eos'",
    ),
    "a change to a reward that is none": (
        solution("{ row = 1, column = 'reward', value = nan }"),
        "challenges[0].solution[0].value",
        "a finite number",
        "nan",
    ),
    "a change to a mask of another width": (
        solution("{ row = 1, column = 'mask', value = [1] }"),
        "challenges[0].solution.mask",
        "2 values",
        "1",
    ),
    "a change of an unknown setting": (
        solution("{ setting = 'epsilon', value = 1 }"),
        "challenges[0].solution[0].setting",
        "nearest 'eps'",
        "'epsilon'",
    ),
    "a change of a setting to what it cannot be": (
        solution("{ setting = 'ddof', value = 2 }"),
        "challenges[0].solution[0].value",
        "one of 1, 0",
        "2",
    ),
    "an added row with an unknown key": (
        solution("{ add_row = { prompt = 'A', rewrad = 1 } }"),
        "challenges[0].solution[0].add_row.rewrad",
        "nearest 'reward'",
        "'rewrad'",
    ),
    "an added row without a mask": (
        solution("{ add_row = { prompt = 'A', reward = 1 } }"),
        "challenges[0].solution[0].add_row.mask",
        "a list",
        "nothing",
    ),
    "a removed row that is not there": (
        solution("{ remove_row = 3 }"),
        "challenges[0].solution[0].remove_row",
        "0 to 2",
        "3",
    ),
    "every row removed": (
        solution(", ".join(["{ remove_row = 0 }"] * 3)),
        "challenges[0].solution[2].remove_row",
        "a row to be left",
        "0",
    ),
    "a solution that leaves no batch": (
        solution(
            "{ setting = 'beta', value = 0.1 },"
            " { row = 0, column = 'prompt', value = 1 }"
        ),
        "challenges[0].solution.prompt",
        "a number, as in row 0",
        "'A'",
    ),
    "other run without a note": (
        VARIANT + OTHER.replace('note = "A note."\n', ""),
        "other_run.note",
        "text",
        "nothing",
    ),
}


@pytest.mark.parametrize("text, key, expected, found", KEY.values(), ids=KEY)
def test_a_key_that_is_wrong(tmp_path, text, key, expected, found):
    path = tmp_path / "mine.toml"
    check(refused(path, text), path, key, None, expected, found)


A, B = '{ prompt = "A", reward = 1.0', '{ prompt = "A", reward = 2.0'
ROW = {
    "rows missing": (but(ROWS, ""), "rows", None, "a list of rows", "nothing"),
    "rows empty": (rows(), "rows", None, "1 to 1000 rows", "0"),
    "too many rows": (
        rows(*[A + " }"] * 1001),
        "rows",
        None,
        "1 to 1000 rows",
        "1001",
    ),
    "rows a table": (
        but(ROWS, "rows = { prompt = 1 }\n"),
        "rows",
        None,
        "a list of rows",
        "{'prompt': 1}",
    ),
    "first row a number": (rows("3"), "rows", 0, "a table", "3"),
    "second row a list": (rows(A + "}", "[1]"), "rows", 1, "a table", "[1]"),
    "row empty": (rows("{}"), "prompt", 0, "a whole number, or", "nothing"),
    "reward missing": (
        rows('{ prompt = "A" }'),
        "reward",
        0,
        "a finite number",
        "nothing",
    ),
    "reward missing further down": (
        rows(A + "}", '{ prompt = "A" }'),
        "reward",
        1,
        "a finite number",
        "nothing",
    ),
    "unknown column": (
        but("reward = 2.0", "rewrad = 2.0"),
        "rewrad",
        2,
        "nearest 'reward'",
        "'rewrad'",
    ),
    "column of one row only": (
        rows(A + "}", B + ", eos = true }"),
        "eos",
        1,
        "the keys of row 0, prompt, reward",
        "'eos'",
    ),
    "column that one row lacks": (
        rows(A + ", eos = true }", B + "}"),
        "eos",
        1,
        "true or false",
        "nothing",
    ),
    "reward NaN": (but("9.0", "nan"), "reward", 0, "a finite", "nan"),
    "reward infinite": (but("2.0", "-inf"), "reward", 2, "finite", "-inf"),
    "reward 1e400": (but("2.0", "1e400"), "reward", 2, "finite", "inf"),
    "reward a boolean": (but("9.0", "true"), "reward", 0, "a finite", "True"),
    "reward a text": (but("9.0", '"9"'), "reward", 0, "a finite", "'9'"),
    "reward a date": (
        but("9.0", "2026-05-22"),
        "reward",
        0,
        "a finite number",
        "datetime.date",
    ),
    "reward of 400 digits": (
        but("9.0", "9" * 400),
        "reward",
        0,
        "at most 64 bits",
        "bits",
    ),
    "prompt a float": (
        rows("{ prompt = 1.5, reward = 1 }"),
        "prompt",
        0,
        "a whole number, or text",
        "1.5",
    ),
    "prompt a boolean": (
        rows("{ prompt = true, reward = 1 }"),
        "prompt",
        0,
        "a whole number, or text",
        "True",
    ),
    "prompt empty": (
        rows('{ prompt = "", reward = 1 }'),
        "prompt",
        0,
        "a whole number, or text",
        "''",
    ),
    "prompt with a space that would be lost": (
        rows(A + "}", '{ prompt = "A ", reward = 1 }'),
        "prompt",
        1,
        "text without spaces around",
        "'A '",
    ),
    "prompts of two types": (
        rows('{ prompt = "1", reward = 1 }', "{ prompt = 1, reward = 1 }"),
        "prompt",
        1,
        "text, as in row 0",
        "1",
    ),
    "eos a number": (
        rows(A + ", eos = 1 }"),
        "eos",
        0,
        "true or false",
        "1",
    ),
    "step a float": (
        rows(A + ", step = 0.0 }"),
        "step",
        0,
        "a whole number",
        "0.0",
    ),
    "step negative": (
        rows(A + ", step = 0 }", B + ", step = -1 }"),
        "step",
        1,
        "a whole number of 0 or more",
        "-1",
    ),
    "step past 31 bits": (
        rows(A + ", step = 2147483648 }"),
        "step",
        0,
        "below 2 ** 31",
        "2147483648",
    ),
    "steps 0": (
        rows(A + ", steps = 1 }", B + ", steps = 0 }"),
        "steps",
        1,
        "1 or more",
        "0",
    ),
    "more kept than there are": (
        rows(
            A + ", steps = 2, kept_steps = 2 }",
            B + ", steps = 2, kept_steps = 3 }",
        ),
        "kept_steps",
        1,
        "at most the row's steps",
        "3",
    ),
    "ragged mask": (
        but("mask = [1, 0]", "mask = [1]"),
        "mask",
        2,
        "2 values, as mask has in row 0",
        "1",
    ),
    "mask empty": (
        but("mask = [0, 0]", "mask = []"),
        "mask",
        0,
        "1 to 64 values",
        "0",
    ),
    "mask of 65 tokens": (
        but("mask = [0, 0]", "mask = [" + "1, " * 65 + "]"),
        "mask",
        0,
        "1 to 64 values",
        "65",
    ),
    "mask of a 2": (
        but("mask = [1, 0]", "mask = [1, 2]"),
        "mask[1]",
        2,
        "0 or 1",
        "2",
    ),
    "mask of booleans": (
        but("mask = [1, 0]", "mask = [true, false]"),
        "mask[0]",
        2,
        "0 or 1",
        "True",
    ),
    "mask of lists": (
        but("mask = [1, 0]", "mask = [[1], [0]]"),
        "mask[0]",
        2,
        "0 or 1",
        "[1]",
    ),
    "mask a text": (
        but("mask = [1, 0]", 'mask = "10"'),
        "mask",
        2,
        "a list",
        "'10'",
    ),
    "logp of another length than the mask": (
        rows(A + ", mask = [1, 1], logp = [-1.0] }"),
        "logp",
        0,
        "2 values, as mask has in row 0",
        "1",
    ),
    "logp ragged without a mask": (
        rows(A + ", logp = [-1.0] }", B + ", logp = [-1.0, -2.0] }"),
        "logp",
        1,
        "1 values, as logp has in row 0",
        "2",
    ),
    "logp NaN": (
        rows(A + ", " + LOGP.replace("-2.0", "nan") + " }"),
        "logp[1]",
        0,
        "a finite number",
        "nan",
    ),
    "ref_logp alone": (
        rows(A + ", ref_logp = [-1.0] }"),
        "logp",
        None,
        "values beside ref_logp",
        "none",
    ),
    "too few expected values": (
        but('[0.0, "none", 1.0]', "[0.0, 1.0]"),
        "expected.correct",
        2,
        "3 values, one a row",
        "2",
    ),
    "too many expected values": (
        VARIANT + "faulty = [0.0, 1.0, 2.0, 3.0]\n",
        "expected.faulty",
        3,
        "3 values, one a row",
        "4",
    ),
    "other run of two rows": (
        VARIANT
        + OTHER.replace(
            '  { prompt = "A", reward = 3.0, mask = [1, 0] },\n', ""
        ),
        "other_run.rows",
        2,
        "3 rows, as in rows",
        "2",
    ),
    "other run of another width": (
        VARIANT
        + OTHER.replace("[0, 0]", "[0]")
        .replace("[1, 1]", "[1]")
        .replace("[1, 0]", "[1]"),
        "other_run.rows.mask",
        0,
        "2 values, as in rows",
        "1",
    ),
    "other run with a reward of 400 digits": (
        VARIANT + OTHER.replace("3.0", "9" * 400),
        "other_run.rows.reward",
        2,
        "at most 64 bits",
        "bits",
    ),
    "other run with a wrong reward": (
        VARIANT + OTHER.replace("3.0", "nan"),
        "other_run.rows.reward",
        2,
        "a finite number",
        "nan",
    ),
    "other run with impossible steps": (
        VARIANT + OTHER.replace(", mask", ", steps = 0, mask"),
        "other_run.rows.steps",
        0,
        "1 or more",
        "0",
    ),
}


@pytest.mark.parametrize(
    "text, key, row, expected, found", ROW.values(), ids=ROW
)
def test_rows_that_are_wrong(tmp_path, text, key, row, expected, found):
    path = tmp_path / "mine.toml"
    check(refused(path, text), path, key, row, expected, found)


@pytest.mark.parametrize("key", [k for k in KEYS if k not in OPTIONAL])
def test_a_main_file_needs_every_key(tmp_path, key):
    path = tmp_path / "zero_std_kl.toml"
    error = refused(path, without(key))
    assert (error.file, error.key) == (str(path), key)
    assert error.expected and error.found == "nothing"


def test_a_main_file_is_checked_as_a_variant_is(tmp_path):
    path = tmp_path / "zero_std_kl.toml"
    text = main_but('kind = "gradient"', 'kind = "slope"')
    check(refused(path, text), path, "telltale.kind", None, "sign", "'slope'")


@pytest.mark.parametrize("stem", ["zero_std_kl", "zero_std_kl-mine"])
def test_the_file_name_and_the_bug_must_agree(tmp_path, stem):
    path = tmp_path / f"{stem}.toml"
    error = refused(path, VARIANT)
    check(error, path, "bug", None, "'zero_std_kl'", "'rejected_rows'")


def test_a_file_of_50_MB_is_refused_unread(tmp_path):
    path = tmp_path / "mine.toml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    start = time.perf_counter()
    with pytest.raises(gradebook.GradebookError) as caught:
        gradebook.load(path)
    assert time.perf_counter() - start < 0.5
    check(caught.value, path, "", None, "at most 1000000 bytes", "50000000")


def test_the_largest_file_is_read(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(VARIANT + "#" * (LARGEST_FILE - len(VARIANT)))
    assert gradebook.load(path).title == "Mine"
    with path.open("a") as file:
        file.write("#")
    with pytest.raises(gradebook.GradebookError, match="1000001"):
        gradebook.load(path)


def load_error(name_or_path):
    with pytest.raises(gradebook.GradebookError) as caught:
        gradebook.load(name_or_path)
    return caught.value


def test_a_directory(tmp_path):
    error = load_error(tmp_path)
    check(error, tmp_path, "", None, "a file", "a directory")


def test_a_missing_file(tmp_path):
    path = tmp_path / "gone.toml"
    error = load_error(str(path))
    check(error, path, "", None, "can be read", "no such file")


def test_a_file_inside_a_file(tmp_path):
    (tmp_path / "a").write_text("")
    path = tmp_path / "a" / "b.toml"
    error = load_error(path)
    check(error, path, "", None, "can be read", "not a directory")


def test_a_pipe_does_not_hang(tmp_path):
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    error = load_error(path)
    check(error, path, "", None, "a file", "a device or a pipe")


def test_a_file_without_permission(tmp_path, monkeypatch):
    path = tmp_path / "mine.toml"
    path.write_text(VARIANT)

    def deny(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    error = load_error(path)
    check(error, path, "", None, "can be read", "permission denied")


def test_a_path_with_a_null_character():
    error = load_error("a/\0b.toml")
    assert error.expected == "a path"
    assert "null" in error.found


def test_a_name_too_long_for_a_file():
    error = load_error("a" * 5000 + ".toml")
    assert "too long" in error.found


@pytest.mark.parametrize(
    "name", ["partial_group", "", "..", "README", "partial_groups "]
)
def test_an_unknown_name_lists_the_known_ones(name):
    error = load_error(name)
    assert error.key == "scenario"
    assert error.expected == "one of " + ", ".join(names())
    assert error.found == repr(name)


@pytest.mark.parametrize("value", [None, 3, b"partial_groups", ["a"]])
def test_neither_a_name_nor_a_path(value):
    error = load_error(value)
    assert error.expected == "a name or a path"
    assert error.found == repr(value)


def test_there_are_more_than_sixty_broken_files():
    assert len(FILE) + len(KEY) + len(ROW) > 60
    texts = [case[0] for case in (*FILE.values(), *KEY.values())]
    texts += [case[0] for case in ROW.values()]
    assert len(set(texts)) == len(texts)


def test_an_unknown_bug_has_no_variants():
    from gradebook.cases.scenario import variants

    with pytest.raises(gradebook.GradebookError, match="nearest 'zero_std"):
        variants("zero_std")
