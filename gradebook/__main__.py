"""The command line: gradebook check, probe, app, bugs and explain.

`gradebook check FILE...` asks whether a run's log is what it should be. Exit
code 0 when every step matches what was declared, or one known computation; 1
when they match another one, or are proved wrong; 2 for everything else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from gradebook.core.errors import GradebookError
from gradebook.core.formatting import short
from gradebook.logs.ci import github, junit
from gradebook.logs.explore import failing_test, worst_steps
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.log import check_log
from gradebook.logs.report import report
from gradebook.logs.what_if import sentences
from gradebook.output.bug_text import bug_list, explain
from gradebook.ui.launch import start_app

WRONG = 2


class _Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = _Parser(prog="gradebook", allow_abbrev=False)
    commands = top.add_subparsers(dest="command", parser_class=_Parser)
    check = commands.add_parser(
        "check",
        help="say whether a log's advantages are correct, or which bug computes them",
        allow_abbrev=False,
    )
    check.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a .parquet, .csv, .tsv or .jsonl file, or a directory of them",
    )
    check.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="text; json; github, as annotations; or junit, as a report",
    )
    check.add_argument(
        "--json",
        action="store_const",
        dest="format",
        const="json",
        help="the same as --format json",
    )
    check.add_argument(
        "--column",
        action="append",
        default=[],
        type=_column,
        metavar="NAME=THEIRS",
        help="which column is what: reward=score, or prompt= for none",
    )
    check.add_argument(
        "--weights",
        type=_weights,
        metavar="A,B",
        help="one weight for each reward function",
    )
    check.add_argument("--group-size", type=_size, metavar="N", help="rows per prompt")
    check.add_argument(
        "--declared",
        type=_declared,
        metavar="NAME=VALUE,...",
        help="what the trainer was asked for: estimator=grpo,scale=group",
    )
    check.add_argument(
        "--places",
        type=_places,
        metavar="N",
        help="decimals that advantages were rounded to",
    )
    check.add_argument(
        "--verbose",
        action="store_true",
        help="tell everything: worst steps, ties, notes, what was not checked",
    )
    check.add_argument("--html", metavar="OUT", help="write a report")
    check.add_argument(
        "--test",
        metavar="OUT",
        help="write the smallest failing step as a pytest file",
    )
    app = commands.add_parser(
        "app", help="start the app; options after -- go to Streamlit"
    )
    app.add_argument("options", nargs="*", help=argparse.SUPPRESS)
    commands.add_parser("bugs", help="list the bugs and whom they affect")
    probed = commands.add_parser(
        "probe",
        help="say what a function from rewards to advantages computes",
        allow_abbrev=False,
    )
    probed.add_argument("function", nargs="?", metavar="MODULE:FUNCTION")
    probed.add_argument("--trainer", metavar="PACKAGE", help="what is installed here")
    probed.add_argument("--declared", type=_declared, metavar="NAME=VALUE,...")
    probed.add_argument("--format", choices=("text", "json", "github"), default="text")
    explain = commands.add_parser(
        "explain", help="show one bug's numbers, and how to find it"
    )
    explain.add_argument("bug", metavar="BUG")
    return top


def _column(text: str) -> tuple[str, str]:
    name, equals, theirs = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=THEIRS: {text!r}")
    return name.strip(), theirs.strip()


def _declared(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not pairs or not all(name.strip() and mark for name, mark, _ in pairs):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE: {text!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _weights(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(abs(w) < 1e300 for w in found):
        raise argparse.ArgumentTypeError(f"expected numbers: {text!r}")
    return found


def _size(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"expected 1 or more: {text!r}")
    return int(text)


def _places(text: str) -> int:
    if not text.isdecimal() or int(text) > 15:
        raise argparse.ArgumentTypeError(f"expected 0 to 15: {text!r}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; the exit code."""
    top = parser()
    given = top.parse_args(arguments)
    if not given.command:
        top.print_usage(sys.stderr)
        return WRONG
    try:
        return _run(given)
    except GradebookError as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        return _failed("cancelled")
    except OSError as error:
        return _failed(f"{error.filename or 'output'}: {error.strerror}")
    except MemoryError:
        return _failed("not enough memory for this log")
    except Exception as error:  # exit code 1 would mean "suspect"
        kind = type(error).__name__
        return _failed(f"unexpected error, please report it: {kind}: {error}")


def _run(given: argparse.Namespace) -> int:
    if given.command == "app":
        start_app(given.options)
    if given.command == "check":
        return _check(given)
    if given.command == "probe":
        from gradebook.trainers.command import probe_command

        return probe_command(
            given.function, given.trainer, given.declared, given.format
        )
    print(bug_list() if given.command == "bugs" else explain(given.bug))
    return 0


def entry() -> NoReturn:
    """The installed command `gradebook`."""
    sys.exit(main())


def _failed(says: str) -> int:
    print(_printable(f"gradebook: {' '.join(says.split())}"), file=sys.stderr)
    return WRONG


def _check(given: argparse.Namespace) -> int:
    told = _progress if sys.stderr.isatty() else None
    try:
        verdict = check_log(
            given.files,
            columns=dict(given.column),
            weights=given.weights,
            group_size=given.group_size,
            places=given.places,
            declared=given.declared,
            progress=told,
        )
    finally:
        if told:
            print(file=sys.stderr)
    if given.format == "text":
        print(_text(verdict, given.verbose))
    else:
        print(FORMATS[given.format](verdict, _place(given.files)))
    if given.html:
        Path(given.html).write_text(report(verdict), encoding="utf-8", errors="replace")
    if given.test:
        if verdict.verdict != "suspect":
            print("gradebook: no suspect, so no test", file=sys.stderr)
        else:
            found = failing_test(given.files, verdict)
            Path(given.test).write_text(found.text, encoding="utf-8", errors="replace")
    return verdict.exit_code


def _place(files: Sequence[str]) -> str:
    """What was checked, for a title."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return _printable(files[0]) + more


def _progress(share: float, steps: int) -> None:
    """A line that is written over, on a terminal."""
    sys.stderr.write(f"\r{share:4.0%}  {steps} steps")
    sys.stderr.flush()


SHORT = 5
"""So many lines follow the verdict, unless all are asked for."""


def _text(verdict: Verdict, verbose: bool) -> str:
    """The verdict for a person."""
    columns = ", ".join(f"{k} = {v}" for k, v in verdict.columns.items())
    worst = worst_steps(verdict, SHORT if verbose else 1)
    lines = [] if verbose else list(verdict.incomplete)  # else among the notes
    lines += [verdict.near] if verdict.near else []
    for _, step in worst[worst["correct_residual"] > 1e-9].iterrows():
        lines.append(
            f"Step {step['step']} is off by {short(step['correct_residual'], 3)} at row"
            f" {step['row']}; flips: {step['flips']}, groups affected:"
            f" {step['groups_affected']} of {step['groups']}."
        )
    lines += sentences(verdict.what_if)[: None if verbose else 1]
    lines.append(f"Columns: {columns}.")
    if verdict.broken and not verbose:
        lines.append(f"Left out: {verdict.broken[0]} (--verbose shows all)")
    if verdict.unchecked and not verbose:
        lines.append(verdict.unchecked)
    if verbose:
        lines += [f"Not told apart from {t.title}. {t.why}" for t in verdict.ties]
        lines += [*verdict.notes, *verdict.broken]
    shown = lines if verbose else lines[:SHORT]
    return "\n".join(map(_printable, [verdict.sentence, *shown]))


FORMATS: Mapping[str, Callable[[Verdict, str], str]] = {
    "text": lambda verdict, _: _text(verdict, False),
    "json": lambda verdict, _: verdict.to_json(),
    "github": github,
    "junit": junit,
}
"""How the verdict is printed. Exit codes are the same in every format."""


def _printable(line: str) -> str:
    """Without what would move a terminal's cursor."""
    return "".join(c if c.isprintable() else "�" for c in line)


if __name__ == "__main__":
    entry()
