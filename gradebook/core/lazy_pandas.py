"""pandas, imported when it is first used: the first numbers of a page need no data
frame. `importlib.util.LazyLoader` is not safe between threads before Python 3.12."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
else:

    class _Late:
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("pandas"), name)

    pd = _Late()

__all__ = ["pd"]
