"""The rules that the bugs break, scenarios/rules/rules.toml."""

from collections.abc import Mapping
from dataclasses import dataclass

from gradebook.cases.schema import FilePart, read_part
from gradebook.core import PROJECT

FILE = PROJECT / "scenarios" / "rules" / "rules.toml"


@dataclass(frozen=True)
class Rule(FilePart):
    """What a correct trainer does, as a title and in one sentence."""

    title: str
    text: str


RULES: Mapping[str, Rule] = read_part(dict[str, Rule], FILE)
"""By name, in the order in which they are shown. Raises GradebookError on import if the
file is none, with file and key."""
