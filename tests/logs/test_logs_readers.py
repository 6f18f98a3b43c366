"""Logs are data: whatever is in a file, it is read, named or refused."""

import errno
import gzip
import io
import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from logs.as_files import bytes_of, of, table
from logs.made import made

import gradebook
from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log
from gradebook.logs.read.files import sources
from gradebook.logs.read.rows import pasted, read_files

TRL = Path(__file__).parent / "trl-group"
EVERY = pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])


@EVERY
def test_every_format_gives_the_same_verdict(kind):
    found = check_log([of(bytes_of(kind), f"log.{kind}")])
    assert found.verdict == "correct" and found.steps_judged == 3
    if kind != "parquet":
        assert check_log([pasted(bytes_of(kind).decode())]).verdict == "correct"


def test_marks_line_ends_and_quoted_prompts_are_read():
    log = made(steps=2)
    log["prompt"] = log["prompt"] + '\nsays "hi", twice'
    data = log.to_csv(index=False).encode()
    for text in (data, b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n")):
        assert check_log([of(text)]).verdict == "correct"
    semicolons = log.to_csv(index=False, sep=";").encode()
    assert check_log([of(semicolons)]).columns["step"] == "step"


@pytest.mark.parametrize(
    "pack, ending",
    [(gzip.compress, "gz"), (lambda d: pa.compress(d, "zstd", asbytes=True), "zst")],
)
def test_compressed_files_are_read(pack, ending):
    data = bytes_of("csv")
    found = check_log([of(pack(data), f"log.csv.{ending}")])
    assert (found.verdict, found.steps_judged) == ("correct", 3)
    bomb = pack(b"step,reward\n" + bytes(2**26))
    for bad, says in ((pack(data)[:40], "log.csv"), (bomb, "at most 67,108,864 bytes")):
        with pytest.raises(GradebookError, match=says):
            check_log([of(bad, f"log.csv.{ending}")])


def test_a_json_array_and_a_table_of_columns_are_read():
    log = made(steps=3).astype({"reward": object})
    log.loc[5, "reward"] = "oops"
    table = {"columns": [*log], "data": log.to_numpy().tolist()}
    for value in (log.to_dict("records"), table):
        (error,) = read_files([of(json.dumps(value), "log.json")]).broken
        assert (error.line, error.key) == (6, "reward")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lists_of_tokens_in_text_are_read(kind):
    """As verl writes them: an advantage per token, the reward at the last."""
    log = made(steps=3)
    tokens = log["response_length"]
    log["advantages"] = [str([a] * n) for a, n in zip(log["advantage"], tokens)]
    log["token_level_scores"] = [
        str([0.0] * (n - 1) + [r]) for r, n in zip(log["reward"], tokens)
    ]
    log["response_mask"] = [str([1] * n) for n in tokens]
    log = log.drop(columns=["reward", "advantage", "response_length"])
    found = check_log([of(bytes_of(kind, log), f"log.{kind}")])
    assert (found.verdict, found.steps_judged) == ("correct", 3)


# Broken rows


NO_ROWS = ("{", "[1, 2]", "null", '{"step": 1}', "nonsense", "{" * 10_000)


@pytest.mark.parametrize(
    "text, says",
    [
        ("1,prompt 0,oops,3,True,2,0.1", "column reward"),
        ("1,prompt 0,,3,True,2,0.1", "an empty cell"),
        ("1,prompt 0,1_5,3,True,2,0.1", "column reward"),
        ("1,prompt 0,0.5,3,True,2,high", "column advantage"),
        ("1,prompt 0,0.5,-3,True,2,0.1", "column response_length"),
        ("1,prompt 0,0.5,3,maybe,2,0.1", "column eos"),
        ("1,prompt 0,0.5,3,True,0,0.1", "column episode_steps"),
        ("1,,0.5,3,True,2,0.1", "column prompt"),
        ("1,prompt 0", "expected 7 cells, found 2"),
        ("1,prompt 0,0.5,3,True,2,0.1,9", "expected 7 cells, found 8"),
        ("1,prompt 0,\xff\xfe,3,True,2,0.1", "column reward"),
        *((text, "log.jsonl") for text in NO_ROWS),
    ],
)
def test_a_broken_row_is_named_and_the_rest_is_judged(text, says):
    kind = "jsonl" if text in NO_ROWS else "csv"
    lines = bytes_of(kind).split(b"\n")
    lines[2] = text.encode("latin-1")  # \xff and \xfe are no UTF-8
    found = check_log([of(b"\n".join(lines), f"log.{kind}")])
    assert len(found.broken) == 1
    assert f"log.{kind}, line 3" in found.broken[0] and says in found.broken[0]
    assert found.verdict == "correct"
    assert (found.steps_judged, found.steps_read) == (2, 3)
    assert found.exit_code == 2


def test_a_broken_row_without_steps_costs_the_prompts_beside_it():
    """24 prompts of four rows in one step; line 10 belongs to the third."""
    log = made(steps=1, groups=24).drop(columns="step").astype(object)
    log.loc[8, "reward"] = "oops"
    found = check_log([of(log.to_csv(index=False))])
    assert found.verdict == "correct" and found.exit_code == 2
    assert "line 10, column reward" in found.broken[0]
    assert found.frame["rows"].tolist() == [96 - 8]
    assert any("all 8 rows of these prompts" in n for n in found.notes)


def test_a_log_of_which_nothing_is_left_says_why():
    found = check_log([of("prompt,reward,advantage\nA,1,0.7\nA,oops\nB,0,0\nB,1,0")])
    assert found.verdict == "cannot tell" and found.steps_judged == 0
    assert "If a row cannot be read, its whole step is left out" in found.sentence


def test_empty_cells_are_read_alike():
    """Two rewards, an advantage, a flag and a length are empty, and one advantage
    is NaN: the first two of three steps are left out."""
    log = made(steps=3).astype({"advantage": object, "eos": object})
    log.loc[[3, 20], "reward"] = None
    log.loc[5, "advantage"], log.loc[7, "advantage"] = None, "nan"
    log.loc[9, "eos"], log.loc[11, "response_length"] = None, None
    kinds = ("csv", "jsonl")
    logs = [read_files([of(bytes_of(k, log), f"log.{k}")]) for k in kinds]
    tables = [log.table for log in logs]
    pd.testing.assert_frame_equal(*tables, check_dtype=False, atol=1e-9)
    named = [[(e.line, e.key) for e in log.broken] for log in logs]
    assert [(line - 1, key) for line, key in named[0]] == named[1]  # the header
    assert len(named[1]) == 5 and (6, "advantage") in named[1]
    assert tables[0]["step"].unique().tolist() == [3]


@pytest.mark.parametrize(
    "text, kind",
    [
        (["1.5", "-2.25", "3"], "text 2"),
        (["1.5000", "-2.2500", "3.0000"], "text 4"),
        (["0", "1", "1"], ""),
        (["0.1234567890123", "0.5", "1"], ""),
        (["1e-7", "0.5", "1"], ""),
    ],
)
def test_the_decimals_of_a_text_are_known(text, kind):
    csv = "prompt,reward,advantage\n" + "\n".join(f"a,1,{t}" for t in text)
    assert read_files([of(csv)]).types == {"reward": "", "advantage": kind}


def with_commas(log, sep):
    """The log as a spreadsheet with decimal commas saves it, three decimals each."""
    log = log.astype({"reward": float})
    return log.to_csv(index=False, sep=sep, decimal=",", float_format="%.3f")


@pytest.mark.parametrize("sep", [";", "\t", ","])
def test_decimal_commas_are_read(sep):
    log = made(steps=3)
    text = with_commas(log, sep)
    assert '"0,' in text if sep == "," else "0," in text
    found = check_log([of(text)])
    assert found.verdict == "correct" and found.steps_judged == 3
    read = read_files([of(text)])
    assert read.types["advantage"] == "text 3"
    assert read.table["advantage"].tolist() == log["advantage"].round(3).tolist()


@pytest.mark.parametrize(
    "cells, numbers",
    [
        (["0,5", "1,25", "-2"], [0.5, 1.25, -2.0]),
        (["0,500", "1,000", "-1,000"], [0.5, 1.0, -1.0]),
        (["1e-3", "0,5", "1,5e2"], [0.001, 0.5, 150.0]),
        # A thousand, or one with three decimals: nobody can know.
        (["1,000", "2,000", "1"], [None, None, 1.0]),
        (["1,000", "0.5", "1"], [None, 0.5, 1.0]),
        # If commas are decimal, a point parts thousands, or is a mistake.
        (["1.000", "0,5", "1"], [None, 0.5, 1.0]),
        (["1,234,567", "1,2,3", "1"], [None, None, 1.0]),
    ],
)
def test_a_comma_is_a_decimal_one_only_if_nothing_else_can_be_meant(cells, numbers):
    rows = [f"{step};a;{cell}" for step, cell in enumerate(cells)]
    log = read_files([of("\n".join(["step;prompt;reward", *rows]))])
    bad = {error.line - 2 for error in log.broken}
    assert bad == {row for row, x in enumerate(numbers) if x is None}
    read = dict(zip(log.table["step"], log.table["reward 0"]))
    assert read == {row: x for row, x in enumerate(numbers) if x is not None}


def test_columns_that_a_person_or_a_trainer_names_are_trusted():
    log = made(steps=1)
    source = of(log.to_csv(index=False))
    assert read_files([source]).columns.trusted == set()
    by_hand = read_files([source], {"eos": "eos", "reward": "reward"})
    assert by_hand.columns.trusted == {"eos", "reward"}
    trl = read_files([TRL]).columns
    assert trl.trusted == {"step", "prompt", "advantage", "reward"}


def test_a_mask_with_one_value_a_row_is_said_not_to_be_used():
    log = made(steps=3).assign(response_mask=1)
    found = check_log([of(log.to_csv(index=False))])
    said = [note for note in found.notes if "`response_mask`" in note]
    assert len(said) == 1 and "one value a row" in said[0] and "not used" in said[0]
    named = check_log(
        [of(log.to_csv(index=False))], columns={"accepted": "response_mask"}
    )
    assert not any("`response_mask` has" in note for note in named.notes)


def test_an_empty_advantage_is_said_in_the_sentence():
    log = made(steps=3)
    log.loc[[5, 6], "advantage"] = None
    found = check_log([of(log.to_csv(index=False))])
    assert found.log.empty_advantages == 2 and found.steps_judged == 2
    assert "2 rows have an empty advantage" in found.sentence


def test_rows_that_span_lines_are_named_by_their_first():
    """The prompt of rows 2 and 4 has two lines; row 3 is broken, on line 6
    behind an empty line."""
    text = 'reward,prompt,advantage\n1,a,0\n1,"b\nb",0\n\nx,a,0\n1,"b\nb",0\n'
    log = read_files([of(text)])
    assert log.rows == 4 and [error.line for error in log.broken] == [6]


# Refused


@pytest.mark.parametrize(
    "data, name, says",
    [
        (b"", "log.csv", "found none"),
        (b"step,reward\n", "log.csv", "found none"),
        (b"a,b\n1,2\n", "log.csv", "reward"),
        (b"reward,reward\n1,2\n", "log.csv", "one column of that name"),
        (",".join(map(str, range(1000))) + "\n1", "log.csv", "at most 512"),
        (b"PK\x03\x04zip", "log.csv", "a binary file"),
        ("a,b\n".encode("utf-16"), "log.csv", "UTF-16"),
        (b"import os", "log.py", "a .parquet, .csv"),
        (b"\x80\x04pickle", "log.pkl", "a .parquet, .csv"),
        (b"1\n2\n", "log.jsonl", "one JSON object a line"),
        (b"nothing", "log.parquet", "a Parquet file"),
    ],
)
def test_what_is_no_log_is_refused_in_a_sentence(data, name, says):
    with pytest.raises(GradebookError, match=says) as error:
        check_log([of(data, name)])
    assert "\n" not in str(error.value)


def test_a_long_prompt_is_read():
    text = bytes_of("csv").decode().replace("prompt 0", '"' + "x\n" * 700_000 + '"', 4)
    assert check_log([of(text)]).verdict == "correct"


def test_a_compression_bomb_is_refused_before_it_is_unpacked():
    rows = 30_000_000
    column = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, "int32")), pa.array([0.0])
    )
    out = io.BytesIO()
    bomb = pa.table({"reward": column.cast(pa.float64())})
    pq.write_table(bomb, out, compression="zstd")
    data = out.getvalue()
    assert len(data) < 1_000_000
    with pytest.raises(GradebookError):
        check_log([of(data, "log.parquet")])


@pytest.mark.parametrize(
    "values",
    [[{"a": 1}] * 4, [["x"]] * 4, [b"\xff"] * 4, [None] * 4, [pd.Timestamp(0)] * 4],
)
def test_a_reward_of_another_type_is_refused_or_named(values):
    frame = pd.DataFrame({"prompt": ["p"] * 4, "advantage": [0.0] * 4})
    try:
        found = check_log([of(table(frame.assign(reward=values)), "log.parquet")])
        assert found.broken
    except GradebookError as error:
        assert "\n" not in str(error)


# Fuzz


@EVERY
def test_a_damaged_file_is_read_or_refused(kind):
    chance = random.Random(kind)
    for flips in (0, 1, 3, 20) * 5:
        data = bytearray(bytes_of(kind))
        for _ in range(flips):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        if not flips:
            del data[chance.randrange(len(data)) :]
        try:
            read_files([of(bytes(data), f"log.{kind}")])
        except GradebookError as error:
            assert "\n" not in str(error)


# Files and folders


def test_verl_dumps_are_read_in_natural_order_with_their_step_in_the_name(tmp_path):
    (tmp_path / "notes.md").write_text("{}")
    with pytest.raises(GradebookError, match="found none"):
        read_files([tmp_path])
    for step in (2, 10):
        rows = [
            {"input": f"q{i // 4}", "output": "text", "score": i % 2} for i in range(8)
        ]
        lines = "\n".join(map(json.dumps, rows))
        (tmp_path / f"{step}.jsonl").write_text(lines)
    assert [s.path.name for s in sources([tmp_path])] == ["2.jsonl", "10.jsonl"]
    found = check_log(str(tmp_path))  # one path, without a list around it
    assert found.verdict == "cannot tell"
    assert found.frame["step"].tolist() == [2, 10]
    assert "no advantages" in found.sentence


def test_conversations_are_prompts():
    log = made(steps=2)
    log["prompt"] = [[{"role": "user", "content": p}] for p in log["prompt"]]
    assert check_log([of(bytes_of("jsonl", log), "log.jsonl")]).verdict == "correct"
    assert gradebook.check(log)["verdict"].tolist() == ["correct"] * 2


def test_a_frame_whose_columns_have_two_levels_is_named():
    with pytest.raises(GradebookError, match="expected a column of prompts"):
        gradebook.check(pd.concat({"run": made(steps=1)}, axis=1))


def test_a_file_without_rows_decides_no_columns():
    empty = of("iteration,uid,score,adv\n", "0.csv")
    verdict = check_log([empty, of(bytes_of("csv"), "1.csv")])
    assert (verdict.verdict, verdict.steps_judged) == ("correct", 3)
    assert verdict.columns["reward"] == "reward"


def test_a_folder_whose_listing_the_system_refuses_is_an_error_with_its_path(
    tmp_path, monkeypatch
):
    # The tests may run as root, whom no mode of a folder stops: the refusal is raised
    # in the place of the system's.
    inside = tmp_path / "run" / "private"
    inside.mkdir(parents=True)
    (tmp_path / "run" / "log.csv").write_text("prompt,reward,advantage\n0,1,1\n")
    listed = Path.iterdir

    def refused(folder):
        if folder == inside:
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(GradebookError) as error:
        check_log(tmp_path / "run")
    assert str(inside) in str(error.value)
    assert "found Permission denied" in str(error.value)
