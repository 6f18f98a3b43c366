"""pandas, imported where it is first used.

To import it takes as long as a fifth of torch, and the first numbers of a
page need no data frame. `importlib.util.LazyLoader` would do the same, but is
not safe between threads before Python 3.12.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
else:

    class _Late:
        """Has what the module has."""

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("pandas"), name)

    pd = _Late()

__all__ = ["pd"]
