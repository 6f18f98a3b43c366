"""The command line: gradebook check, probe, app, bugs and explain.

`gradebook check FILE...` asks whether a run's log is what it should be. Exit
code 0 when every step matches what was declared, or one known computation; 1 when they
match another one, or are proved wrong; 2 for everything else.
"""

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NoReturn

from gradebook.core import PROJECT
from gradebook.core.errors import GradebookError, refuse
from gradebook.logs.explore import failing_test
from gradebook.logs.judging.sentences import COMMAND, unnamed_said
from gradebook.logs.log import check_log, options_of, pairs
from gradebook.logs.read.log_columns import Unnamed
from gradebook.logs.surfaces import escaped, github, junit, printable, report, text
from gradebook.output.terminal import bug_list, explain

if TYPE_CHECKING:
    from gradebook.trainers.examination import Probe

WRONG = 2


class _Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    top = _Parser(prog="gradebook", allow_abbrev=False)
    commands = top.add_subparsers(dest="command", parser_class=_Parser)
    settings = {"metavar": "NAME=VALUE,...", "action": "append", "default": []}

    def command(name: str, what: str) -> Callable[..., argparse.Action]:
        return commands.add_parser(name, help=what, allow_abbrev=False).add_argument

    what = "say whether a log's advantages are correct, or which bug computes them"
    add = command("check", what)
    files = "a .parquet, .csv, .tsv or .jsonl file, or a directory of them"
    add("files", nargs="+", metavar="FILE", help=files)
    formats = "text; json; github, as annotations; or junit, as a report"
    names = ("text", "json", "github", "junit")
    add("--format", choices=names, default="text", help=formats)
    columns = "which column is what: reward=score, or prompt= for none"
    theirs = {"metavar": "NAME=THEIRS", "action": "append", "default": []}
    add("--column", **theirs, help=columns)
    weights = "one weight for each reward function"
    add("--weights", default="", metavar="A,B", help=weights)
    add("--group-size", default="", metavar="N", help="rows per prompt")
    declared = "what the trainer was asked for: estimator=grpo,scale=group"
    add("--declared", **settings, help=declared)
    places = "decimals that advantages were rounded to"
    add("--places", type=int, choices=range(16), metavar="N", help=places)
    verbose = "tell everything: worst steps, ties, notes, what was not checked"
    add("--verbose", action="store_true", help=verbose)
    add("--html", metavar="OUT", help="write a report")
    test = "write the smallest step of a suspected bug as a pytest file"
    add("--test", metavar="OUT", help=test)

    add = command("app", "start the app; options after -- go to Streamlit")
    add("options", nargs="*", help=argparse.SUPPRESS)

    command("bugs", "list the bugs and whom they affect")

    add = command("probe", "say what a function from rewards to advantages computes")
    add("function", nargs="?", metavar="MODULE:FUNCTION")
    add("--trainer", metavar="PACKAGE", help="what is installed here")
    several = "names of several rewards: the function takes a dict from each to groups"
    add("--rewards", default="", metavar="A,B", help=several)
    lengths = "the function takes the responses' lengths, too"
    add("--lengths", action="store_true", help=lengths)
    finished = "the function takes which responses ended, too"
    add("--finished", action="store_true", help=finished)
    add("--declared", **settings)
    add("--format", choices=("text", "json", "github"), default="text")

    add = command("explain", "show one bug's numbers, and how to find it")
    add("bug", metavar="BUG")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; the exit code."""
    top = parser()
    options = top.parse_args(arguments)
    if not options.command:
        top.print_usage(sys.stderr)
        return WRONG
    try:
        if options.command == "app":
            return start_app(options.options)
        if options.command == "check":
            return _check(options)
        if options.command == "probe":
            return _probe(options)
        print(bug_list() if options.command == "bugs" else explain(options.bug))
        return 0
    except Unnamed as error:
        reason = unnamed_said(error, COMMAND)
    except GradebookError as error:
        reason = str(error)
    except KeyboardInterrupt:
        reason = "cancelled"
    except OSError as error:
        reason = f"{error.filename or 'output'}: {error.strerror}"
    except Exception as error:  # exit code 1 would mean "suspect"
        reason = f"unexpected error, please report it: {type(error).__name__}: {error}"
    print(printable(f"gradebook: {' '.join(reason.split())}"), file=sys.stderr)
    return WRONG


def start_app(options: Sequence[str] = ()) -> NoReturn:
    """Becomes `streamlit run app.py`, so that a signal that ends the process ends
    the server. Streamlit reads the project's settings beside app.py; options given here
    override them. Raises GradebookError if Streamlit or Plotly is not installed."""
    for name in ("streamlit", "plotly"):
        if importlib.util.find_spec(name) is None:
            raise GradebookError(
                f"{name} is not installed: pip install 'gradebook[app]'"
            )
    run = [sys.executable, "-m", "streamlit", "run", str(PROJECT / "app.py")]
    os.execv(run[0], [*run, *options])


def _check(options: argparse.Namespace) -> int:
    terminal = sys.stderr.isatty()
    typed = options_of(
        options.column,
        ",".join(options.declared),
        options.weights,
        options.group_size,
    )
    try:
        verdict = check_log(
            options.files,
            places=options.places,
            progress=_progress if terminal else None,
            **typed,
        )
    finally:
        if terminal:
            print(file=sys.stderr)
    first, *others = options.files
    place = printable(first) + (f" and {len(others)} more" if others else "")
    write: dict[str, Callable[[], str]] = {
        "text": partial(text, verdict, options.verbose),
        "json": verdict.to_json,
        "github": partial(github, verdict, place),
        "junit": partial(junit, verdict, place),
    }
    print(write[options.format]())
    if options.html:
        Path(options.html).write_text(report(verdict), "utf-8", "replace")
    if options.test and verdict.verdict == "suspect":
        Path(options.test).write_text(failing_test(verdict), "utf-8", "replace")
    elif options.test:
        print("gradebook: no suspect, so no test", file=sys.stderr)
    return verdict.exit_code


def _probe(options: argparse.Namespace) -> int:
    """Probes a function, or those of an installed trainer, and prints what they
    compute. Raises GradebookError for a function or a trainer that is not there."""
    if bool(options.function) == bool(options.trainer):
        raise refuse("MODULE:FUNCTION, or --trainer", "both or none", "probe")
    probes = _probes_of_trainer if options.trainer else _probe_of_function
    results = probes(options)
    if options.format == "json":
        print(json.dumps({name: result.to_dict() for name, result in results.items()}))
    elif options.format == "github":
        for name, result in results.items():
            level = ("notice", "error", "warning")[result.exit_code]
            print(f"::{level} title={escaped(name, ':,')}::{escaped(str(result))}")
    else:
        print("\n\n".join(f"{name}\n{result}" for name, result in results.items()))
    codes = {result.exit_code for result in results.values()}
    return 1 if 1 in codes else max(codes)


def _probes_of_trainer(options: argparse.Namespace) -> "dict[str, Probe]":
    """The place of each function of an installed trainer -> its probe."""
    from gradebook.measure import package

    given = (options.declared, options.rewards, options.lengths, options.finished)
    if any(given):
        problem = "options that describe a function, which a trainer's adapter says"
        raise refuse("--trainer alone", problem, "probe")
    probes = dict(package.probes_of_trainer(options.trainer))
    if not probes:
        expected = f"a known, installed release of {', '.join(package.NAMES)}"
        raise refuse(expected, options.trainer, "--trainer")
    return probes


def _probe_of_function(options: argparse.Namespace) -> "dict[str, Probe]":
    """The function's name -> its probe."""
    from gradebook.trainers.probe import probe

    declared = pairs(",".join(options.declared).split(","), "declared")
    names = tuple(options.rewards.split(",")) if options.rewards else ()
    function = _named_function(options.function)
    takes = {"lengths": options.lengths, "finished": options.finished}
    result = probe(function, declared, rewards=names, **takes)
    return {options.function: result}


def _named_function(name: str) -> Callable[..., Any]:
    """The function `package.module:function`, looked for in the current folder first.
    Raises GradebookError if it cannot be imported or called."""
    sys.path.insert(0, "")
    try:
        function = resolve_name(name)
    except Exception as error:  # its module may raise anything
        problem = f"{name} ({error})"
        raise refuse("package.module:function", problem, "probe") from None
    if not callable(function):
        raise refuse("package.module:function", f"{name} (no function)", "probe")
    return function


def _progress(share: float, steps: int) -> None:
    """A line that is written over, on a terminal."""
    print(f"\r{share:4.0%}  {steps} steps", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
