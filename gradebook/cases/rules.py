"""The rules that the bugs break, scenarios/rules/rules.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from gradebook.core import PROJECT

FILE = PROJECT / "scenarios" / "rules" / "rules.toml"


@dataclass(frozen=True)
class Rule:
    """What a correct trainer does, as a title and in one sentence."""

    name: str
    title: str
    text: str


RULES: Mapping[str, Rule] = {
    name: Rule(name, **words)
    for name, words in tomllib.loads(FILE.read_text("utf-8")).items()
}
"""By name, in the order in which they are shown."""
