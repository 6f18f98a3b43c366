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
from gradebook.trainers.probe import probe

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

    judged = cache(lambda: probe(function, declared))  # when the first test asks

    def check(name: str) -> None:
        answer = judged().laws[name]
        if answer == BROKEN:
            shown = judged().shown[name]
            batch = f"Rewards {shown.rewards} give {shown.advantages}."
            raise AssertionError(f"{shown.sentence} {batch}")
        if answer != HOLDS:
            pytest.skip(answer)

    marks = {
        choice(name, LAWS, "expected"): [pytest.mark.xfail(strict=True, reason=reason)]
        for name, reason in (expected or {}).items()
    }
    return [
        pytest.param(partial(check, name), id=name, marks=marks.get(name, []))
        for name in LAWS
    ]
