"""One bug of each stage: the tests of a page visit these by default, and all
bugs under the marker `long`."""

import gradebook
from gradebook.cases.scenario import variants
from gradebook.ui.parts.address import bug_files

BY_STAGE = {gradebook.bug(name).stage: name for name in reversed(bug_files())}
"""{stage: the bug whose page comes first}."""

SHIPPED = tuple(b for b in gradebook.BUGS if len(variants(b)) > 1)
"""The bugs that have what scenarios/README.md asks for before one is shipped: further
cases, challenges, and so on. A bug that is being added does not have them yet."""
