"""The line between a draft and its board in a browser.

A message is a dict, {"epoch": .., "edits": [edit, ..]}. Of an edit "n" counts the
browser's edits, "do" names what it does, and the other keys are that act's. A browser
repeats an edit until it is answered, so an edit may arrive late or twice. It is carried
out once.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Edit = Mapping[str, Any]


def _nothing() -> None:
    pass


def _always() -> bool:
    return True


@dataclass
class Channel:
    """One draft's line.

    epoch  a name that only its learner knows: other messages change nothing
    ack    the number of the last edit that was taken
    sent   how often the board was sent; the browser keeps the newest
    acts   acts besides cases.edits.ACTS: name -> act
    board  makes the board's data; it changes nothing
    note   notes what a message brought: a solved challenge, the lead's reveal.
    is_behind  whether the page shows something of the draft outside the board that
           has changed since it was drawn: only then a finished edit runs the page.
           `board`, `note` and `is_behind` run outside of the session's run, too
    """

    epoch: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    ack: int = 0
    sent: int = 0
    acts: Mapping[str, Callable[[Edit], None]] = field(default_factory=dict)
    board: Callable[[], dict[str, Any]] = dict
    note: Callable[[], None] = _nothing
    is_behind: Callable[[], bool] = _always

    def unread(self, message: Any) -> Iterator[Edit]:
        """The edits of a message that were not taken before. Each counts as taken.
        None, if it is no message about this draft."""
        if not isinstance(message, Mapping) or message.get("epoch") != self.epoch:
            return
        edits = message.get("edits")
        for edit in edits if isinstance(edits, list) else []:
            number = edit.get("n") if isinstance(edit, Mapping) else None
            if type(number) is int and number > self.ack:
                self.ack = number
                yield edit
