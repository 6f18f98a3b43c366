"""What the check promises, measured on the made logs of `formulas`.

    python tests/logs/promises.py [logs] [first seed]

prints, for each kind of log, how many were told what they must be, and each
log that was not, with its seed: `python tests/logs/promises.py one inside 7`.
"""

import sys
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import formulas  # noqa: E402
from asking import named, verdict_on  # noqa: E402


def inside(seed):
    """Nobody innocent is accused; the right name is told, exit code 0."""
    name, estimator, frame = formulas.innocent(seed)
    said = verdict_on(frame)
    right = said.exit_code == 0 and estimator in named(said)
    return name, "broken" if said.exit_code == 1 else right, said


def outside(seed):
    """Exit code 2, and no bug."""
    name, frame = formulas.unknown(seed)
    said = verdict_on(frame)
    return name, said.exit_code == 2 and not said.bug or "broken", said


def faults(seed):
    """Structure proves a bug, exit code 1; others are asked about."""
    name, proved, frame = formulas.fault(seed)
    said = verdict_on(frame)
    if proved:
        right = (said.exit_code, said.bug) == (1, name)
    else:
        right = said.exit_code != 1 and name in (said.bug, *said.asks)
    return f"{name}{', proved' * proved}", right or "broken", said


def misdeclared(seed):
    """A wrong declaration never gets exit code 0."""
    drawn = formulas.misdeclared(seed)
    if drawn is None:
        return "", True, None
    declared, name, frame = drawn
    said = verdict_on(frame, declared={"estimator": declared})
    return f"{name}, {declared} declared", said.exit_code != 0 or "broken", said


KINDS = {
    "inside": (0.4, inside),
    "outside": (0.2, outside),
    "faults": (0.2, faults),
    "misdeclared": (0.2, misdeclared),
}
"""Kind of log -> its share, and what it has to be told."""


def measured(kind, logs, first=0):
    """Logs, told right, promises broken; prints each log that is told wrong, and
    the kind's line."""
    share, judged = KINDS[kind]
    count = right = broken = 0
    seed = first
    while count < round(logs * share):
        name, told, said = judged(seed)
        count += said is not None
        right += said is not None and told is True
        broken += told == "broken"
        if told is not True:
            sentence = f"exit {said.exit_code}: {said.sentence}"
            print(f"{kind} {seed}, {name}: {sentence}", flush=True)
        seed += 1
    line = f"{kind:12} {count:5} logs, right {right}, promises broken {broken}"
    print(line, flush=True)
    return count, right, broken


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["one"]:
        name, right, said = KINDS[sys.argv[2]][1](int(sys.argv[3]))
        print(name, right, said.exit_code, said.sentence, said.asks, said.convention)
    else:
        logs, first = map(int, [*sys.argv[1:], *("2000", "0")[len(sys.argv) - 1 :]])
        for kind in KINDS:
            measured(kind, logs, first)
