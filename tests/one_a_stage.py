"""One bug of each stage: the tests of a page visit these by default, and all
bugs under the marker `long`."""

from pathlib import Path

import gradebook
from gradebook.cases.scenario import variants

FOLDER = Path(__file__).parents[1] / "pages"
PAGES = sorted(
    (int(number), name)
    for number, _, name in (file.stem.partition("_") for file in FOLDER.glob("[0-9]*"))
    if name in gradebook.BUGS
)
BY_STAGE = {gradebook.bug(name).stage: name for _, name in reversed(PAGES)}
"""{stage: the bug whose page comes first}."""

SHIPPED = tuple(b for b in gradebook.BUGS if len(variants(b)) > 1)
"""The bugs that have what README's list asks for before one is shipped: further
cases, challenges, and so on. A bug that is being added has not."""
