"""The eight laws as pytest parameters, for any function from rewards to
advantages.

    @pytest.mark.parametrize("law", gradebook.laws(advantages, expected={
        "flat": "float32 rounding over eps 1e-6"}))
    def test_law(law):
        law()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gradebook.analysis.law_check import BROKEN, HOLDS
from gradebook.core.errors import refuse
from gradebook.trainers.convention import LAWS
from gradebook.trainers.probe import Probe, probe

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


class _Once:
    """One probe for all laws, when the first test asks."""

    def __init__(self, function: Any, declared: Mapping[str, Any] | None) -> None:
        self.of = (function, declared)
        self.found: Probe | None = None

    def __call__(self) -> Probe:
        if self.found is None:
            self.found = probe(*self.of)
        return self.found


def laws(
    function: Callable[..., Any],
    expected: Mapping[str, str] | None = None,
    declared: Mapping[str, Any] | None = None,
) -> list[ParameterSet]:
    """A parameter for each law: call it, and it fails where the law is
    broken. A law in `expected` must be broken, for the reason given there.

    >>> [law.id for law in laws(list)][:2]
    ['order', 'other_prompts']

    Raises GradebookError for a law that does not exist.

    >>> [law.id for law in laws(sorted)][:3]
    ['order', 'other_prompts', 'shift']
    """
    import pytest

    reasons = dict(expected or {})
    for name in reasons:
        if name not in LAWS:
            raise refuse("one of " + ", ".join(LAWS), name, "expected")
    found = _Once(function, declared)
    return [
        pytest.param(
            partial(_check, found, name),
            id=name,
            marks=[pytest.mark.xfail(strict=True, reason=reasons[name])]
            if name in reasons
            else [],
        )
        for name in LAWS
    ]


def _check(found: _Once, name: str) -> None:
    import pytest

    known = found()
    answer = known.laws[name]
    if answer == BROKEN:
        shown = known.shown.get(name)
        batch = f" Rewards {shown.rewards} give {shown.advantages}." if shown else ""
        raise AssertionError((shown.sentence if shown else name) + batch)
    if answer != HOLDS:
        pytest.skip(answer)
