"""Home's case: one reward to drag over some stops, with a bug that turns on the way."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated

from gradebook.cases.scenario import FOLDER, PlainCase
from gradebook.cases.schema import Count, Number, between, check_index, read_part
from gradebook.core.errors import choice, refuse


@dataclass(frozen=True, eq=False, kw_only=True)
class HomeCase(PlainCase):
    """The keys of scenarios/games/home.toml beside those of a plain case.

    stops         the rewards of the row `focus` for which policies were trained, in
                  order
    start         the one that is shown first
    row_in_words  the row whose faulty advantage is described in words
    about         the words before that description
    ways          what the bug does to that row: pushes it down, nothing, pushes it up

    Raises GradebookError unless there is exactly one bug and `start` is a stop.
    """

    stops: Annotated[tuple[Number, ...], between(2)]
    start: Number
    row_in_words: Count
    about: str
    ways: Annotated[tuple[str, ...], between(3, 3)]

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(str(self.start), [str(stop) for stop in self.stops], "start")
        if len(self.bugs) != 1:
            raise refuse("one bug", len(self.bugs), "bugs")
        check_index("row_in_words", self.row_in_words, len(self.rows), "rows")

    @property
    def bug(self) -> str:
        return self.bugs[0]


@cache
def home_case() -> HomeCase:
    return read_part(HomeCase, FOLDER / "games" / "home.toml", name="home")
