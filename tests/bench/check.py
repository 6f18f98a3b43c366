"""How often the check is right, how fast it is, and what it holds.

    python tests/bench/check.py accuracy [batches]    500 a bug and estimator
    python tests/bench/check.py speed [steps]         2,000 steps of 500 rows
    python tests/bench/check.py text                  1,000,000 rows of text
    python tests/bench/check.py passes                the search alone

A pass is making a fresh Batch and one run of the correct engine over the
same rows; `passes` are the check's CPU time over a pass's, reading apart.

Speed is a multiple of what pyarrow takes to read the same file, both for the
first time in a fresh process and for the medians of five; memory is the
process's peak, and what the checks leave behind.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import gradebook
from gradebook.core.errors import GradebookError
from gradebook.core.settings import ESTIMATORS, Settings

BUGS = tuple(b for b in gradebook.BUGS if gradebook.bug(b).in_advantages)
NOISE = 1e-6
TOKENS = 40


def batches(kind: str, count: int, chance: np.random.Generator):
    """Random steps with rewards of several kinds, and what tells a bug."""
    frames = []
    for step in range(count):
        groups, size = chance.integers(2, 7), chance.integers(2, 9)
        sizes = np.full(groups, size)
        if kind == "partial_groups" or chance.random() < 0.3:
            some = chance.random(groups) < 0.5
            less = chance.integers(0, 3, groups) * some
            sizes = np.maximum(1, sizes - less)
            sizes[chance.integers(groups)] = size
        prompt = np.repeat(np.arange(groups), sizes)
        rows = len(prompt)
        rewards = (
            chance.normal(size=rows),
            chance.integers(0, 2, rows).astype(float),
            chance.integers(0, 5, rows) * 0.25,
            chance.normal(size=rows) * 10,
        )[chance.integers(4)]
        frame = pd.DataFrame({"step": step, "prompt": prompt})
        frame["reward"] = rewards.astype("float32").astype("float64")
        frame["length"] = chance.integers(1, TOKENS, rows)
        frame["eos"] = frame["scored"] = True
        frame["steps"] = frame["kept_steps"] = 1
        frame["rollout"] = np.arange(rows)
        frame["rank"] = 0
        frame["text"] = frame["prompt"]
        if kind == "rejected_rows":
            frame.loc[chance.random(rows) < 0.25, "length"] = 0
        if kind == "no_eos_outliers":
            frame["eos"] = chance.random(rows) > 0.25
        _shape(frame, kind, chance)
        if kind == "double_normalization":
            frame["steps"] = chance.integers(1, 12, rows)
            kept = chance.integers(1, 12, rows)
            frame["kept_steps"] = np.minimum(frame["steps"], kept)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _shape(frame: pd.DataFrame, kind: str, chance) -> None:
    """What else a step needs to show a bug."""
    rows, prompt = len(frame), frame["prompt"].to_numpy()
    first = np.searchsorted(prompt, prompt)  # the prompt's first row
    if kind == "unscored_rows":
        frame["scored"] = chance.random(rows) > 0.25
        frame.loc[~frame["scored"], "reward"] = 0.0
    if kind in ("fan_out", "sharded_whitening"):
        frame["rollout"] = first + (np.arange(rows) - first) // 2
        at = frame["rollout"].to_numpy()
        frame["reward"] = frame["reward"].to_numpy()[at]
    if kind == "sharded_whitening":
        frame["rank"] = chance.integers(0, 2, rows)
    if kind == "prompt_text":
        frame["text"] = prompt // 2
    if kind == "filtered_first":
        # A multiple of the group size is left: else the trainer stops.
        size = int(np.bincount(prompt).max())
        left = rows // size * size if rows % size else rows - size
        chosen = chance.permutation(rows)[: max(left, size)]
        frame["eos"] = np.isin(np.arange(rows), chosen)
    if kind in ("float32_dust", "one_pass_variance", "bf16_rewards"):
        odd = np.float32(100.1 + 0.1 * prompt).astype("float64")
        frame["reward"] = odd + (np.arange(rows) == first) * 0.5 * (
            kind != "float32_dust"
        )
    if kind == "padded_mean":
        frame.loc[0, "length"] = TOKENS  # a log knows the longest response
    if kind == "variance_floor":
        frame["reward"] = chance.integers(0, 9, rows) / 4096


def logged(frame: pd.DataFrame, bug: str, estimator: str | Settings, chance):
    """The frame with what an engine computes, in float32 and with noise."""
    settings = ESTIMATORS[estimator] if isinstance(estimator, str) else estimator
    if bug == "one_pass_variance":
        settings = replace(
            settings,
            baseline="leave_one_out",
            scale="others_std",
            lone_row="zero",
            whiten_tokens=False,
        )
    if bug in ("no_eos_outliers", "filtered_first"):
        settings = replace(settings, mask_no_eos=True)
    engine = gradebook.bug(bug).engine if bug else gradebook.CORRECT
    lengths = frame["length"].to_numpy()
    columns = [c for c in frame if c != "length"]
    batch = gradebook.Batch(
        **{name: frame[name].tolist() for name in columns},
        mask=(np.arange(TOKENS) < lengths[:, None]).tolist(),
        settings=settings,
    )
    numbers = gradebook.run(engine, batch).advantage.numpy()
    noisy = numbers + chance.normal(size=len(frame)) * NOISE
    return frame.assign(advantage=noisy.astype("float32"))


def right(found: pd.DataFrame, bug: str) -> np.ndarray:
    """bool [S]: the right engine is first, or tied and said so."""
    tied = np.array([bug in ties for ties in found["ties"]], dtype=bool)
    if bug:
        return (found["bug"] == bug).to_numpy() | tied
    return found["verdict"].isin(["correct", "cannot tell"]).to_numpy()


def answers(count: int, seed: int = 0):
    """(bug, "" for clean logs; estimator; the check's frame) of each."""
    chance = np.random.default_rng(seed)
    for bug in ("", *BUGS):
        for estimator in ESTIMATORS:
            kind = bug or str(chance.choice(BUGS))
            rows = batches(kind, count, chance)
            try:
                log = logged(rows, bug, estimator, chance)
            except GradebookError:  # fewer than two tokens to whiten
                continue
            yield bug, estimator, gradebook.check(log)


def shares(count: int, seed: int = 0) -> dict[tuple[str, str], float]:
    """The share of right answers for each bug ("" for clean logs) and
    estimator."""
    return {
        (bug, estimator): float(right(found, bug).mean())
        for bug, estimator, found in answers(count, seed)
    }


def hard_answers(count: int, seed: int = 0):
    """(what is in the log, the check's frame, the steps that are answered
    right, bool [S]) for logs that can tell little, or nothing that is
    known. Nobody may be accused in them, and no noise be called correct."""
    chance = np.random.default_rng(seed)
    for rows in (1, 2, 3):
        for estimator in ("grpo", "dr_grpo", "rloo"):
            frame = short_steps(count, rows, chance)
            found = gradebook.check(logged(frame, "", estimator, chance))
            fine = found["verdict"].isin(["correct", "cannot tell"])
            yield f"{rows} rows a step, {estimator}", found, fine.to_numpy()
            frame["advantage"] = chance.normal(size=len(frame))
            found = gradebook.check(frame)
            fine = found["verdict"] != "suspect"
            yield f"{rows} rows a step, random", found, fine.to_numpy()
    frame = batches("", count, chance).assign(reward=1.0)
    frame["advantage"] = chance.normal(size=len(frame))
    found = gradebook.check(frame)
    fine = found["verdict"] == "none fits"
    yield "constant rewards, random advantages", found, fine.to_numpy()
    for changes in OUTSIDE:
        frame = batches("", count, chance)
        estimator = replace(ESTIMATORS["grpo"], **changes)
        found = gradebook.check(logged(frame, "", estimator, chance))
        fine = ~found["verdict"].isin(["suspect"])
        yield f"outside the table: {changes}", found, fine.to_numpy()


OUTSIDE = (
    {"ddof": 0, "eps": 1e-2},
    {"baseline": "batch_mean", "scale": "group_std", "eps": 1e-2},
    {"baseline": "none", "scale": "batch_std", "ddof": 0, "eps": 1e-2},
)
"""Changes to GRPO that no listed trainer has."""


def short_steps(count: int, rows: int, chance) -> pd.DataFrame:
    """Steps of one prompt with a few rows, rewards 0 to 1."""
    total = count * rows
    return pd.DataFrame(
        {
            "step": np.repeat(np.arange(count), rows),
            "prompt": 0,
            "reward": chance.integers(0, 5, total) * 0.25,
            "length": chance.integers(1, TOKENS, total),
        }
    )


def accuracy(count: int) -> None:
    """Prints the shares; of clean batches also those called correct, the
    rest being batches in which nothing varies."""
    each: dict[bool, list[float]] = {True: [], False: []}
    strict = []
    for bug, estimator, found in answers(count):
        share = float(right(found, bug).mean())
        each[bug == ""].append(share)
        if not bug:
            strict.append(float((found["verdict"] == "correct").mean()))
        print(f"{bug or 'clean':22}{estimator:30}{share:.4f}", flush=True)
    for name, clean in (("clean", True), ("faulty", False)):
        found = each[clean]
        print(f"{name}: {np.mean(found):.4f} of {count * len(found)} batches")
    print(f"clean and called correct: {np.mean(strict):.4f}")
    for what, _, fine in hard_answers(count):
        print(f"{what:60}{fine.mean():.4f}", flush=True)


# Speed and memory

ROWS, GROUP = 500, 5
TEXT = "the quick brown fox jumps over the lazy dog " * 6


def write(path: Path, steps: int, texts: bool, bug: str = "") -> None:
    """A GRPO log in verl's convention, clean or as a bug computes it, with
    the columns that show the bug, with or without completions. Groups have
    four or five rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance, writer = np.random.default_rng(0), None
    engine = gradebook.bug(bug).engine if bug else gradebook.CORRECT
    settings = replace(
        ESTIMATORS["grpo"],
        group_size=GROUP if bug else None,
        mask_no_eos=bug == "no_eos_outliers",
    )
    for first in range(0, steps, 100):
        step = np.repeat(np.arange(first, min(first + 100, steps)), ROWS)
        sizes = chance.integers(GROUP - 1, GROUP + 1, len(step))
        prompt = np.repeat(np.arange(len(sizes)), sizes)[: len(step)]
        reward = chance.normal(size=len(step))
        more = telling(bug, len(step), chance)
        length = more.get("length", np.ones(len(step)))
        told = {name: torch.from_numpy(values) for name, values in more.items()}
        told.pop("length", None)
        batch = gradebook.Batch(
            prompt=torch.from_numpy(prompt),
            reward=torch.from_numpy(reward),
            step=torch.from_numpy(step),
            mask=torch.from_numpy(length > 0)[:, None],
            settings=settings,
            **told,
        )
        numbers = gradebook.run(engine, batch).advantage.numpy()
        columns = {
            "step": step,
            "prompt": prompt,
            "reward": reward,
            "advantage": numbers.astype("float32"),
            **more,
        }
        if texts:
            columns["prompt"] = [f"question {p}: {TEXT[:80]}" for p in prompt]
            cuts = chance.integers(100, len(TEXT), len(step))
            columns["completion"] = [f"{i} {TEXT[:c]}" for i, c in enumerate(cuts)]
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def telling(bug: str, rows: int, chance) -> dict[str, np.ndarray]:
    """The columns by which a bug shows, [rows] each."""
    if bug == "rejected_rows":
        kept = chance.random(rows) > 0.1
        return {"length": chance.integers(1, 1000, rows) * kept}
    if bug == "no_eos_outliers":
        return {"eos": chance.random(rows) > 0.1}
    if bug == "double_normalization":
        steps = chance.integers(1, 12, rows)
        return {"steps": steps, "kept_steps": steps}
    return {}


def measured(path: str) -> None:
    """In a fresh process: check, then read, then print both."""
    from gradebook.logs.log import check_log

    check_log([ROOT / "tests" / "logs" / "trl-group"])
    checks, reads, before = [], [], resident()
    for _ in range(5):
        start = time.perf_counter()
        verdict = check_log([path])
        checks.append(time.perf_counter() - start)
    left = resident() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for _ in range(5):
        start = time.perf_counter()
        rows = rows_by_pyarrow(path)
        reads.append(time.perf_counter() - start)
    first = checks[0] / reads[0]
    usual = np.median(checks) / np.median(reads)
    print(
        f"{rows:>9,} rows  check {checks[0]:.2f} s, median"
        f" {np.median(checks):.2f}  read {reads[0]:.3f} s, median"
        f" {np.median(reads):.3f}  times {first:.1f}, medians {usual:.1f}"
        f"  peak {peak} MB, left {left} MB  {verdict.verdict}",
        flush=True,
    )


def resident() -> int:
    """MB of memory that the process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def rows_by_pyarrow(path: str) -> int:
    """Reads the file as pyarrow does on one thread; how many rows it has."""
    from pyarrow import csv, json, parquet

    if path.endswith(".csv"):
        options = csv.ReadOptions(use_threads=False)
        return csv.read_csv(path, read_options=options).num_rows
    if path.endswith(".jsonl"):
        options = json.ReadOptions(use_threads=False)
        return json.read_json(path, read_options=options).num_rows
    return parquet.read_table(path).num_rows


def text() -> None:
    """Prints time and memory for 1,000,000 rows of CSV and JSON Lines."""
    print("cores", os.cpu_count(), "load", os.getloadavg(), flush=True)
    log = logged_as(plain_rows(1_000_000, True), "", "grpo")
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"log.{end}") for end in ("csv", "jsonl")]
        log.to_csv(paths[0], index=False)
        log.to_json(paths[1], orient="records", lines=True)
        del log  # else the process that checks begins with its size
        for path in paths:
            print(f"{Path(path).suffix}, {os.path.getsize(path) >> 20} MB")
            here = [sys.executable, __file__, "measure", path]
            subprocess.run(here, check=True)


def speed(steps: int) -> None:
    """Prints time and memory for two sizes, clean and faulty, without and
    with texts."""
    print("cores", os.cpu_count(), "load", os.getloadavg())
    with tempfile.TemporaryDirectory() as folder:
        for texts in (False, True):
            for bug in ("", *BUGS) if not texts else ("", "partial_groups"):
                what = "with completions" if texts else "numbers only"
                print(f"{what}, {bug or 'clean'}", flush=True)
                for count in (steps // 4, steps):
                    path = Path(folder) / f"{count}.parquet"
                    write(path, count, texts, bug)
                    here = [sys.executable, __file__, "measure", str(path)]
                    subprocess.run(here, check=True)


# Passes


def plain_rows(rows: int, steps: bool) -> pd.DataFrame:
    """Groups of four or five rows; steps of 500 rows, or one step."""
    chance = np.random.default_rng(0)
    sizes = chance.integers(4, 6, rows // 4)
    frame = pd.DataFrame({"step": np.arange(rows) // 500 * steps})
    frame["prompt"] = np.repeat(np.arange(len(sizes)), sizes)[:rows]
    frame["reward"] = chance.normal(size=rows)
    return frame


def passes() -> None:
    """Prints the passes of a check: steps of 500 rows, and one step."""
    print("cores", os.cpu_count(), "load", os.getloadavg())
    torch.set_num_threads(1)
    gradebook.check(logged_as(plain_rows(2000, True), "", "grpo"))
    for rows, steps in ((1_000_000, True), (1_000_000, False)):
        frame = plain_rows(rows, steps)
        for bug, estimator in (
            ("", "grpo"),
            ("", "grpo over the batch"),
            ("", "reinforce_plus_plus_baseline"),
            ("partial_groups", "grpo"),
            ("partial_groups", "grpo over the batch"),
            ("missing_parentheses", "grpo"),
            ("noise", "grpo"),
        ):
            log = logged_as(frame, bug, estimator)
            one = min(seconds(lambda: run_once(frame)) for _ in range(3))
            told: list[pd.DataFrame] = []
            taken = seconds(lambda: told.append(gradebook.check(log)))
            verdict = "/".join(told[0]["verdict"].unique())
            print(
                f"{rows:>9,} rows, {'steps' if steps else 'one step':9}"
                f"{bug or 'correct':20}{estimator:30}{taken / one:6.1f}"
                f" passes of {one * 1000:.0f} ms  {verdict}",
                flush=True,
            )


def logged_as(frame: pd.DataFrame, bug: str, estimator: str) -> pd.DataFrame:
    """The rows with the advantages of an engine, or with noise."""
    if bug == "noise":
        chance = np.random.default_rng(1)
        return frame.assign(advantage=chance.normal(size=len(frame)))
    engine = gradebook.bug(bug).engine if bug else gradebook.CORRECT
    settings = Settings(scale="batch_std")  # as TRL computes it
    if estimator != "grpo over the batch":
        settings = ESTIMATORS[estimator]
    settings = replace(settings, group_size=GROUP)
    numbers = gradebook.run(engine, fresh(frame, settings)).advantage
    return frame.assign(advantage=numbers.numpy().astype("float32"))


def fresh(frame: pd.DataFrame, settings: Settings) -> gradebook.Batch:
    """The rows as a new batch."""
    names = ("prompt", "reward", "step")
    columns = {n: torch.tensor(frame[n].to_numpy()) for n in names}
    return gradebook.Batch(**columns, settings=settings)


def run_once(frame: pd.DataFrame) -> None:
    """One pass."""
    gradebook.run(gradebook.CORRECT, fresh(frame, ESTIMATORS["grpo"]))


def seconds(work) -> float:
    """CPU time of the process."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    task = sys.argv[1] if len(sys.argv) > 1 else "accuracy"
    if task == "measure":
        measured(sys.argv[2])
    elif task == "passes":
        passes()
    elif task == "text":
        text()
    elif task == "speed":
        speed(int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
    else:
        accuracy(int(sys.argv[2]) if len(sys.argv) > 2 else 500)
