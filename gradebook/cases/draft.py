"""A case that a learner edits."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from gradebook.cases import edits
from gradebook.cases.history import History
from gradebook.cases.scenario import Case
from gradebook.cases.state import State, message_of, start
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError

C = TypeVar("C", bound=Case)


class Regrouped(NamedTuple):
    """Pasted rows whose groups have another size than the setting.

    size     rows of the largest group
    setting  rows per prompt that the trainer is configured with
    all      every group has `size` rows
    """

    size: int
    setting: int
    all: bool


def regrouped(before: State, after: State) -> Regrouped | None:
    """What a paste did to the groups: rows of one prompt and step. None if they have
    the size that is set, if none is set, and if the paste changed no group."""
    names = ("prompt", "step")
    labels = [
        [s.table[n] for n in names if n in s.table.columns] for s in (before, after)
    ]
    setting = after.settings.group_size
    if setting is None or labels[0] == labels[1]:
        return None
    sizes = after.batch().prompt_rows
    size = int(sizes.max())
    if size == setting:
        return None
    return Regrouped(size, setting, bool((sizes == size).all()))


@dataclass
class Draft(Generic[C]):
    """A case, its history, and what could not be carried out.

    notes    why the last edit could not be carried out, in words
    refused  text that could not be read, and why, by its place: "3 reward" or the
             name of a setting, until the place is edited again or rows move
    typing   the last edit belongs to a gesture that goes on: a drag, or text that
             is being typed
    regrouped  the group size that a paste brought, if the setting has another; None
             once the batch changes again, or the learner keeps the setting
    lock     held by whoever changes the draft, or reads it more than once: edits
             arrive on another thread while a page is drawn
    """

    scenario: C
    history: History = field(init=False)
    notes: list[str] = field(default_factory=list)
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    typing: bool = False
    regrouped: Regrouped | None = None
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _checked: tuple[State, Batch] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.history = History([self.origin])

    @property
    def origin(self) -> State:
        return start(self.scenario)

    @property
    def state(self) -> State:
        return self.history.state

    @property
    def base(self) -> State:
        """The batch without the learner's edits: the one that was opened from
        elsewhere, else the case's."""
        return self.state.opened.state if self.state.opened else self.origin

    @property
    def edited(self) -> bool:
        """The batch is not the case's own."""
        return not self.state.same_batch(self.origin)

    @property
    def moved(self) -> bool:
        """The learner has edited the batch since it came."""
        return not self.state.same_batch(self.base)

    @property
    def batch(self) -> Batch:
        """The state's batch. An edit's was made when its state was checked."""
        if self._checked and self._checked[0] is self.state:
            return self._checked[1]
        return self.state.batch()

    def edit(self, **changes: Any) -> None:
        """The next state; one that changes the batch can be undone."""
        self.become(replace(self.state, **changes))

    def become(self, state: State, gesture: Any = None) -> None:
        """Another state of the same case. Edits of one gesture are one step of undo.
        Raises GradebookError if the state is no valid batch."""
        batch = state.batch()
        with self.lock:
            self.history.add(state, gesture)
            self._checked = state, batch
            self.notes, self.regrouped = [], None

    def do(self, act: Callable[..., State], *values: Any, gesture: Any = None) -> None:
        """Carries out an act, or says why not in `notes` and keeps the text."""
        place = " ".join(map(str, values[:-1])) if act in edits.TYPED else ""
        before = self.state
        try:
            self.become(act(self.state, *values), gesture)
        except GradebookError as error:
            self.notes = [message_of(error)]
            if place:
                self.refused[place] = str(values[-1]), self.notes[0]
            return
        self.refused.pop(place, None)
        if act in edits.MOVING:
            self.refused.clear()
        if act in edits.PASTING:
            self.regrouped = regrouped(before, self.state)

    def take(self, edit: Mapping[str, Any]) -> None:
        """Carries out an edit of a browser: "do" names one of edits.ACTS, and other
        keys are the act's arguments. Edits of a gesture are committed by the one
        with "commit". Never raises: what cannot be done is noted."""
        name = str(edit.get("do"))
        act, keys = edits.ACTS.get(name, (None, []))
        values = [edit.get(key) for key in keys]
        kinds = [edits.KINDS.get(key, (int,)) for key in keys]
        is_known = name in edits.ACTS
        if act is not None:
            self.typing = edit.get("gesture") is not None and not edit.get("commit")
        if not is_known or any(type(v) not in k for v, k in zip(values, kinds)):
            self.notes = ["The browser sent an edit that the server does not know."]
        elif act is None:
            getattr(self, name)(*values)
        else:
            self.do(act, *values, gesture=edit.get("gesture"))

    def select(self, row: int, token: int | None = None) -> None:
        with self.lock:
            self.history.replace(edits.select(self.state, row, token))

    def commit(self) -> None:
        """The gesture of the last edit has ended."""
        self.typing = False

    def go(self, at: int) -> None:
        """The state number `at` of the history, or the nearest."""
        with self.lock:
            self.typing = False
            self.history.go(at)
            self.notes, self.regrouped = [], None
            self.refused.clear()

    def keep_group_size(self) -> None:
        """The learner keeps the setting, whatever was pasted."""
        self.regrouped = None

    def undo(self) -> None:
        self.go(self.history.at - 1)

    def redo(self) -> None:
        self.go(self.history.at + 1)

    def reset(self) -> None:
        self.typing = False
        self.become(self.origin)
        self.refused.clear()
