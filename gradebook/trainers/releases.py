"""The shipped measurements: what each function of each release computes."""

import json
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradebook.analysis.law_check import NOT_MEASURED
from gradebook.analysis.laws import OF_REWARDS

if TYPE_CHECKING:
    import pandas

LAWS = tuple(law.__name__ for law in OF_REWARDS)
DATA = Path(__file__).with_name("measured.jsonl")
"""One JSON object a line; `python -m gradebook.measure` writes it."""


@lru_cache
def measured() -> tuple[dict[str, Any], ...]:
    """All lines, oldest release first within a package. A law that is newer
    than the data is "not measured"."""
    laws = dict.fromkeys(LAWS, NOT_MEASURED)
    lines = map(json.loads, DATA.read_text("utf-8").splitlines())
    return tuple({**line, "laws": laws | line["laws"]} for line in lines)


def newest() -> tuple[dict[str, Any], ...]:
    """The lines of each package's newest measured release."""
    last = {line["package"]: line["version"] for line in measured()}
    return tuple(x for x in measured() if x["version"] == last[x["package"]])


SETTING_COLUMNS = (
    *("trainer", "package", "version", "file", "function", "setting", "reached"),
    *("default", "computes", "baseline", "scale", "ddof", "eps", "lone_row"),
    *("missing", "float_type", "ragged"),
)


def releases() -> "pandas.DataFrame":
    """Every measured release: a row for each function and setting, with a column
    for each law; the columns `law_scale` and `law_missing` are laws, `scale` and
    `missing` settings.

    >>> "zero_sum" in releases()
    True
    """
    import pandas

    columns = {law: f"law_{law}" if law in SETTING_COLUMNS else law for law in LAWS}
    rows = [
        line
        | {columns[law]: word for law, word in line["laws"].items()}
        | {"bugs": ", ".join(line["bugs"])}
        for line in measured()
    ]
    last = ("bugs", "license", "measured_on")
    return pandas.DataFrame(rows)[[*SETTING_COLUMNS, *columns.values(), *last]]


def numbers(version: str) -> list[int]:
    """A version's leading numbers, for comparison."""
    return [int(part) for part in takewhile(str.isdecimal, version.split("."))]
