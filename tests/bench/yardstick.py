"""What the check says of many logs, so that a change of the judging can be explained.

    python tests/bench/yardstick.py save FILE [FOLDER ...]   the answers, as JSON
    python tests/bench/yardstick.py compare BEFORE AFTER     each difference

The logs are those of tests/logs and scenarios/logs, those of the FOLDERs, and 8 of
each kind that the formulas make. An answer is the exit code, the kind of verdict, the
bug, the questions, the estimator, the sentence and the near miss.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/logs")]

import formulas
from asking import verdict_on

from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log

MADE = 8
"""So many logs of each kind that the formulas make."""

DECLARED: tuple[dict[str, str], ...] = (
    {},
    {"estimator": "grpo"},
    {"estimator": "dr_grpo", "counts": "length"},
)
"""What each log that is a file is checked under."""

ENDINGS = (".csv", ".jsonl", ".json", ".parquet")


def places(folders: list[Path]) -> Iterator[Path]:
    """Each log: a file, or a folder of TRL's files."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            of_trl = path.is_dir() and any(path.glob("completions_*.parquet"))
            is_part = path.name.startswith("completions_")
            if of_trl or (path.suffix in ENDINGS and not is_part):
                yield path


def answer(check, *args, **options) -> dict:
    try:
        verdict = check(*args, **options)
    except GradebookError as error:
        return {"error": str(error)}
    return {
        "exit": verdict.exit_code,
        "kind": verdict.verdict,
        "bug": verdict.bug,
        "asks": sorted(verdict.asks),
        "estimator": verdict.estimator,
        "sentence": verdict.sentence,
        "near": verdict.near,
    }


def answers(folders: list[Path]) -> Iterator[tuple[str, dict]]:
    for path in places(folders):
        for declared in DECLARED:
            words = ",".join(declared.values())
            name = f"{'/'.join(path.parts[-3:])} {words}".strip()
            yield name, answer(check_log, [path], declared=declared)
    for seed in range(MADE):
        name, _, frame = formulas.innocent(seed)
        yield f"inside {seed} {name}", answer(verdict_on, frame)
        name, frame = formulas.unknown(seed)
        yield f"outside {seed} {name}", answer(verdict_on, frame)
        name, _, frame = formulas.fault(seed)
        yield f"fault {seed} {name}", answer(verdict_on, frame)
        if drawn := formulas.misdeclared(seed):
            estimator, name, frame = drawn
            said = answer(verdict_on, frame, declared={"estimator": estimator})
            yield f"misdeclared {seed} {name}, {estimator}", said


def save(file: str, *folders: str) -> None:
    warnings.simplefilter("ignore")
    known = [ROOT / "tests/logs", ROOT / "scenarios/logs", *map(Path, folders)]
    told = dict(answers(known))
    Path(file).write_text(json.dumps(told, indent=1))
    print(f"{len(told)} answers")


def compare(before: str, after: str) -> None:
    old, new = (json.loads(Path(file).read_text()) for file in (before, after))
    for name in old.keys() & new.keys():
        changed = {
            key: (old[name].get(key), new[name].get(key))
            for key in {**old[name], **new[name]}
            if old[name].get(key) != new[name].get(key)
        }
        if changed:
            print(
                name, *(f"\n    {k}: {a}\n     -> {b}" for k, (a, b) in changed.items())
            )


if __name__ == "__main__":
    task, *rest = sys.argv[1:]
    {"save": save, "compare": compare}[task](*rest)
