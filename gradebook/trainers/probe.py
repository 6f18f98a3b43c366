"""gradebook.probe and gradebook.laws: the examination of somebody's function, in a
process of its own, or of recorded answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from gradebook.analysis import law_check
from gradebook.analysis.law_check import BROKEN, HOLDS, NOT_MEASURED
from gradebook.core.errors import choice, refuse
from gradebook.trainers import several
from gradebook.trainers.child import (
    EOS,
    LENGTH,
    Inputs,
    Rewards,
    Unusable,
    answer_of,
    apart,
)
from gradebook.trainers.examination import Probe, examine
from gradebook.trainers.releases import LAWS

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def probe(
    function: Callable[..., Sequence[Sequence[float]]] | None = None,
    declared: Mapping[str, Any] | None = None,
    *,
    rewards: Sequence[str] = (),
    lengths: bool = False,
    finished: bool = False,
    outputs: Sequence[tuple[Rewards, Any]] | None = None,
) -> Probe:
    """Says what a function from rewards to advantages computes.

    function  takes rewards by prompt, None if one is missing, and returns
              advantages in the same shape. It runs in a process of its own
    declared  what it should compute, as `gradebook.check` takes it
    rewards   names of several reward functions: the function then takes a dict
              from each name to rewards by prompt
    lengths   whether its next argument is the responses' lengths by prompt, whole
              numbers of tokens; 0 if a response is masked as a whole
    finished  whether its last argument says which responses ended, True or False by
              prompt
    outputs   recorded answers instead, pairs of rewards and advantages; text
              in place of advantages is an error that was raised

    Raises GradebookError for names that are no two to eight different ones.

    >>> probe(outputs=[([[1, 0]], [[0.5, -0.5]])]).laws["zero_sum"]
    'holds'
    """
    if (function is None) == (outputs is None):
        raise refuse("a function or outputs", "both or none", "probe")
    names = (rewards,) if isinstance(rewards, str) else tuple(rewards)
    if outputs is not None:
        if names or lengths or finished:
            expected = (
                "a function; gradebook.check reads a table of rewards and lengths"
            )
            raise refuse(expected, "outputs", "probe")
        return _of_outputs(outputs, declared)
    assert function is not None
    if names:
        several.verify(names)
    columns = (LENGTH,) * lengths + (EOS,) * finished
    with apart(function, Inputs(names, columns)) as (call, notes):
        if names:
            judged = several.examine(call, names, declared, columns)
        else:
            judged = examine(call, declared, columns=columns)
    return replace(judged, notes=(*judged.notes, *notes))


def _of_outputs(
    outputs: Sequence[tuple[Rewards, Any]], declared: Mapping[str, Any] | None
) -> Probe:
    """The probe of recorded answers. A law that needs another one is not measured."""
    pairs = [
        ([[r if r is None else float(r) for r in group] for group in batch], groups)
        for batch, groups in outputs
    ]
    batches = {f"output {n}": rewards for n, (rewards, _) in enumerate(pairs)}
    recorded = {json.dumps(rewards): groups for rewards, groups in reversed(pairs)}

    def look_up(rewards: Rewards) -> Any:
        groups = recorded.get(json.dumps(rewards), "no such pair")
        if isinstance(groups, str):
            raise Unusable(groups)
        return groups

    judged = examine(partial(answer_of, look_up), declared, batches, batches)
    refused = [law for law, word in judged.laws.items() if word == law_check.REFUSED]
    return replace(judged, laws={**judged.laws, **dict.fromkeys(refused, NOT_MEASURED)})


def laws(
    function: Callable[..., Any],
    expected: Mapping[str, str] | None = None,
    declared: Mapping[str, Any] | None = None,
    *,
    rewards: Sequence[str] = (),
    lengths: bool = False,
    finished: bool = False,
) -> "list[ParameterSet]":
    """The laws as pytest parameters, for any function from rewards to advantages: call
    one, and it fails if the law is broken.

    function  takes rewards by prompt and returns advantages, as in `probe`
    expected  law -> reason: the law must be broken, for this reason
    declared, rewards, lengths, finished  as in `probe`

    Raises GradebookError for a law that does not exist.

        @pytest.mark.parametrize("law", gradebook.laws(advantages, expected={
            "flat": "float32 rounding over eps 1e-6"}))
        def test_law(law):
            law()

    >>> [law.id for law in laws(list)][:2]
    ['order', 'other_prompts']
    """
    import pytest

    @cache  # when the first test asks
    def judged() -> Probe:
        return probe(
            function, declared, rewards=rewards, lengths=lengths, finished=finished
        )

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
