"""The eight laws as pytest parameters, for any function from rewards to
advantages.

    @pytest.mark.parametrize("law", gradebook.laws(advantages, expected={
        "flat": "float32 rounding over eps 1e-6"}))
    def test_law(law):
        law()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from gradebook.analysis.law_check import BROKEN, HOLDS
from gradebook.core.errors import choice
from gradebook.trainers.convention import LAWS
from gradebook.trainers.probe import Probe, probe

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


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
    """
    import pytest

    reasons = dict(expected or {})
    for name in reasons:
        choice(name, LAWS, "expected")
    judged = cache(lambda: probe(function, declared))  # when the first test asks
    return [
        pytest.param(
            partial(_check, judged, name),
            id=name,
            marks=[pytest.mark.xfail(strict=True, reason=reasons[name])]
            if name in reasons
            else [],
        )
        for name in LAWS
    ]


def _check(judged: Callable[[], Probe], name: str) -> None:
    import pytest

    answer, shown = judged().laws[name], judged().shown.get(name)
    if answer == BROKEN:
        batch = f" Rewards {shown.rewards} give {shown.advantages}." if shown else ""
        raise AssertionError((shown.sentence if shown else name) + batch)
    if answer != HOLDS:
        pytest.skip(answer)
