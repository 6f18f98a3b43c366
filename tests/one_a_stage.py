"""One bug of each stage: the tests of a page visit these by default, and all
bugs under the marker `long`."""

from pathlib import Path

import gradebook
from gradebook.cases.scenario import variants

PAGES = Path(__file__).parents[1] / "pages"


def _first_of_each_stage() -> dict[str, str]:
    """{stage: the bug whose page comes first}."""
    names = sorted(
        (int(number), name)
        for number, _, name in (
            file.stem.partition("_") for file in PAGES.glob("[0-9]*_*.py")
        )
        if name in gradebook.BUGS
    )
    found: dict[str, str] = {}
    for _, name in names:
        found.setdefault(gradebook.bug(name).stage, name)
    return found


BY_STAGE = _first_of_each_stage()

SHIPPED = tuple(b for b in gradebook.BUGS if len(variants(b)) > 1)
"""The bugs that have what README's list asks for before one is shipped: further
cases, challenges, and so on. A bug that is being added has not."""
