"""A database of rooms that cannot be used: one error, one sentence."""

from gradebook.core.errors import GradebookError

AWAY = "The room's database is away; your own work goes on."


class Away(GradebookError):
    """The rooms' database cannot be used at the moment."""

    def __init__(self) -> None:
        super().__init__(AWAY)
