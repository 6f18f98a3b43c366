"""The examples in the docstrings of the public face are true."""

import doctest
import inspect
import sys

import pytest

import gradebook

CONSTANTS = ("BUGS", "CORRECT", "ESTIMATORS")


def examples(owner):
    """The examples in an object's own docstring."""
    text = inspect.getdoc(owner) or ""
    module = sys.modules[getattr(owner, "__module__", owner.__name__)]
    return doctest.DocTestParser().get_doctest(
        text, dict(vars(module)), owner.__name__, None, None
    )


@pytest.mark.parametrize("name", ["", *sorted({*gradebook.__all__} - {*CONSTANTS})])
def test_the_examples_of_a_public_name_are_true(name):
    test = examples(getattr(gradebook, name) if name else gradebook)
    assert test.examples, "a public name has an example"
    said = []
    failed, _ = doctest.DocTestRunner().run(test, out=said.append)
    assert not failed, "".join(said)


def test_the_examples_use_every_public_constant():
    owners = [getattr(gradebook, n) for n in gradebook.__all__]
    named = [o for o in owners if hasattr(o, "__name__")]
    used = "".join(e.source for o in named for e in examples(o).examples)
    assert all(name in used for name in CONSTANTS)
