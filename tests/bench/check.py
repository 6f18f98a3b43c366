"""How often the check is right on each step, how fast it is, and what it holds.

    python tests/bench/check.py accuracy [steps [bug ...]]     40 steps a log
    python tests/bench/check.py promises [logs [first seed [kind ...]]]   500 of each
    python tests/bench/check.py speed [rows]                   1,000,000 rows
    python tests/bench/check.py memory [rows]
    python tests/bench/check.py start [rows]                   300 rows

Accuracy is that of steps that the engines compute, correct and faulty, declared and
undeclared; promises are kept on logs that formulas made, outside the engines.
Speed is the CPU time of a check over that of a plain run of the correct engine
on the same rows (aim at most 60); memory is the most that a check of a file
adds, over the table in pandas (aim at most 6). Start is the CPU time of the command
on a small log over that of importing torch, pandas and pyarrow (aim at most 3).
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/logs")]

import promises

import gradebook
from gradebook.core.errors import GradebookError
from gradebook.core.settings import ESTIMATORS, Settings

BUGS = tuple(b for b in gradebook.BUGS if gradebook.bug(b).in_advantages)
NOISE = 1e-6
TOKENS = 40
GROUP = 5


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


def logged(frame: pd.DataFrame, bug: str, settings: Settings, chance):
    """The frame with what an engine computes, in float32 and with noise."""
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


def right(found: pd.DataFrame, bug: str, declared: bool, same: np.ndarray):
    """bool [S] the step was told what it must be. A correct step is correct,
    can tell nothing, or asks about the raw reward. Of a faulty one the bug is
    named, asked about or tied; it is never correct if something else was
    declared, nor a suspect by another name. `same`, bool [S]: the bug leaves
    the step as it was."""
    verdict = found["verdict"]
    if not bug:
        names = found["estimator"].map(lambda name: (name,)) + found["ties"]
        raw = names.map(lambda each: "none" in each)
        asks = (verdict == "asks") & raw & (not declared)
        return (verdict.isin(["correct", "cannot tell"]) | asks).to_numpy()
    told = [
        bug in (step["bug"], *step["asks"], *step["ties"])
        for _, step in found.iterrows()
    ]
    fine = np.array(told) & ~((verdict == "correct") & declared)
    quiet = (verdict == "cannot tell") & (found["residual"].isna())
    accused = (verdict == "suspect") & (found["bug"] != bug)
    return ((fine | quiet | same) & ~accused).to_numpy()


def unchanged(rows: pd.DataFrame, log: pd.DataFrame, bug: str, settings, chance):
    """bool [S] a correct engine gives what was logged. Whether rows without EOS
    count and what a lone row gets are not declared, so any will do."""
    near = 2**-7 if bug == "bf16_rewards" else 1e-4
    room = near * (1 + log["advantage"].abs())
    same = np.zeros(log["step"].nunique(), dtype=bool)
    for masked, lone in product((False, True), ("raw", "zero")):
        other = replace(settings, mask_no_eos=masked, lone_row=lone)
        away = logged(rows, "", other, chance)["advantage"] - log["advantage"]
        same |= (away.abs() <= room).groupby(log["step"]).all().to_numpy()
    return same


def answers(count: int, bugs=("", *BUGS), seed: int = 0):
    """(bug, "" for clean logs; estimator; was it declared; the check's frame,
    the steps that were told what they must be, bool [S]) of each log."""
    for bug, (number, estimator) in product(bugs, enumerate(ESTIMATORS)):
        chance = np.random.default_rng([seed, number])
        rows = batches(bug or str(chance.choice(BUGS)), count, chance)
        settings = ESTIMATORS[estimator]
        declaration: dict = {"estimator": estimator}
        if bug == "one_pass_variance":  # no other computation has it
            declaration = {"baseline": "leave_one_out", "scale": "others_std"}
            settings = replace(settings, **declaration)
            settings = replace(settings, lone_row="zero", whiten_tokens=False)
        try:
            log = logged(rows, bug, settings, chance)
            same = unchanged(rows, log, bug, settings, chance)
        except GradebookError:  # fewer than two tokens to whiten
            continue
        for declared in ({}, declaration):
            found = gradebook.check(log, declared=declared)
            fine = right(found, bug, bool(declared), same)
            yield bug, estimator, bool(declared), found, fine


def accuracy(count: int, *bugs: str) -> None:
    """Prints the share of steps that were told what they must be."""
    for bug, estimator, declared, _, fine in answers(count, bugs or ("", *BUGS)):
        how = "declared" if declared else ""
        print(f"{bug or 'clean':22}{estimator:30}{how:10}{fine.mean():.4f}", flush=True)


def promises_kept(logs: int, first: int = 0, *kinds: str) -> None:
    """Prints each made log of these kinds, or of all, that is not told what it must
    be, and how many are."""
    warnings.simplefilter("ignore")
    for kind in kinds or promises.KINDS:
        promises.measured(kind, logs, first)


def plain_rows(rows: int) -> pd.DataFrame:
    """Groups of four or five rows in steps of 500 rows."""
    chance = np.random.default_rng(0)
    sizes = chance.integers(4, 6, rows // 4)
    frame = pd.DataFrame({"step": np.arange(rows) // 500})
    frame["prompt"] = np.repeat(np.arange(len(sizes)), sizes)[:rows]
    frame["reward"] = chance.normal(size=rows)
    return frame


def computed(frame: pd.DataFrame, bug: str, settings: Settings) -> pd.DataFrame:
    """The rows with the advantages of an engine, or with noise."""
    if bug == "noise":
        chance = np.random.default_rng(1)
        return frame.assign(advantage=chance.normal(size=len(frame)))
    engine = gradebook.bug(bug).engine if bug else gradebook.CORRECT
    numbers = gradebook.run(engine, fresh(frame, settings)).advantage
    return frame.assign(advantage=numbers.numpy().astype("float32"))


def fresh(frame: pd.DataFrame, settings: Settings) -> gradebook.Batch:
    """The rows as a new batch."""
    names = ("prompt", "reward", "step")
    columns = {n: torch.tensor(frame[n].to_numpy()) for n in names}
    return gradebook.Batch(**columns, settings=settings)


def logs_of(rows: int):
    """(name, settings, log) of five logs: correct, faulty and noise."""
    frame, grpo = plain_rows(rows), replace(ESTIMATORS["grpo"], group_size=GROUP)
    yield "correct", grpo, computed(frame, "", grpo)
    batch = replace(grpo, scale="batch_std")
    yield "correct", batch, computed(frame, "", batch)
    for bug in ("partial_groups", "missing_parentheses", "noise"):
        yield bug, grpo, computed(frame, bug, grpo)


def speed(rows: int) -> None:
    """Prints a check's CPU time in plain runs of the engine."""
    torch.set_num_threads(1)
    frame, grpo = plain_rows(rows), replace(ESTIMATORS["grpo"], group_size=GROUP)
    gradebook.check(computed(plain_rows(2000), "", grpo))
    for name, settings, log in logs_of(rows):
        plain = min(
            seconds(lambda: gradebook.run(gradebook.CORRECT, fresh(frame, grpo)))
            for _ in range(3)
        )
        taken = seconds(lambda: gradebook.check(log))
        print(
            f"{rows:>9,} rows {name:20} {settings.scale:10}"
            f" {taken / plain:6.1f} plain runs of {plain * 1000:.0f} ms",
            flush=True,
        )


def seconds(work) -> float:
    """CPU time of the process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def start(rows: int) -> None:
    """Prints the command's CPU time over that of its largest imports, the least of
    three runs of each, one after the other."""
    imports = [sys.executable, "-c", "import torch, pandas, pyarrow"]
    grpo = ESTIMATORS["grpo"]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "log.csv")
        computed(plain_rows(rows), "", grpo).to_csv(path, index=False)
        command = [sys.executable, "-m", "gradebook", "check", path]
        pairs = [(of_process(command), of_process(imports)) for _ in range(3)]
    check, plain = map(min, zip(*pairs))
    print(f"{rows:>9,} rows {check / plain:.2f} imports of {plain:.2f} s", flush=True)


def of_process(command: list[str]) -> float:
    """CPU time of a process, which has to end well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def memory(rows: int) -> None:
    """Prints what a check of a file adds to the process, in tables."""
    for name, settings, log in logs_of(rows):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "log.parquet")
            here = [sys.executable, __file__, "peak", path]
            log.head(1000).to_parquet(path)
            first = int(subprocess.check_output(here, text=True))
            log.to_parquet(path)
            more = int(subprocess.check_output(here, text=True)) - first
        tables = more / log.memory_usage(deep=True).sum()
        print(
            f"{rows:>9,} rows {name:20} {settings.scale:10}"
            f" {more >> 20} MB, {tables:.1f} tables",
            flush=True,
        )


def peak(path: str) -> None:
    """In a fresh process: the most memory that a check takes, in bytes."""
    from gradebook.logs.log import check_log

    check_log([path])
    # Not ru_maxrss: that begins with what the process that started this one had.
    status = Path("/proc/self/status").read_text()
    print(int(re.findall(r"VmHWM:\s+([0-9]+) kB", status)[0]) * 1024)


if __name__ == "__main__":
    task, *given = sys.argv[1:] or ["accuracy"]
    if task == "peak":
        peak(given[0])
    elif task == "accuracy":
        accuracy(int(given[0]) if given else 40, *given[1:])
    elif task == "promises":
        numbers, kinds = (given or ["500"])[:2], given[2:]
        promises_kept(*map(int, numbers), *kinds)
    elif task == "start":
        start(int(given[0]) if given else 300)
    else:
        {"speed": speed, "memory": memory}[task](int(given[0]) if given else 10**6)
