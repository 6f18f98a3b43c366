"""Whatever is done to the board, its picture, the server's state and the link
agree at the end."""

import random

import pytest

from gradebook.analysis.state_comparison import compared
from gradebook.cases import link
from gradebook.cases.scenario import load
from gradebook.ui.board.view import view
from gradebook.ui.parts.drafts import Draft

CASES = ("rejected_rows", "partial_groups", "double_normalization")
ACTS = (
    *["cell"] * 8,
    *["mask"] * 2,
    *("add", "remove", "move", "paste", "replace", "width"),
    *("undo", "redo", "go", "reset", "select"),
)


def anything(chance, rows, at):
    """A random edit, sometimes one that cannot be done."""
    start = chance.randrange(3)
    return {
        "do": chance.choice(ACTS),
        "row": chance.randrange(-1, rows + 1),
        "to": chance.randrange(rows + 1),
        "column": chance.choice(["reward"] * 4 + ["prompt", "t1", "eos"]),
        "value": chance.choice(["1", "-2.5", "1e9", "1,5", "", "B", True]),
        "start": start,
        "stop": start + chance.randrange(3),
        "text": chance.choice(["1\n2\n3", "B\t4", "", "x"]),
        "tokens": chance.randrange(1, 6),
        "at": chance.randrange(at + 2),
        **chance.choice([{}, {"gesture": chance.randrange(3)}]),
        **chance.choice([{}, {"final": True}]),
    }


def played(name, seed, length=25):
    """A draft after random edits, in messages that overlap and repeat."""
    chance, draft, sent = random.Random(seed), Draft(load(name)), []
    for number in range(1, length + 1):
        edit = anything(chance, draft.state.rows, len(draft.states))
        sent.append({"n": number, **edit})
        since = chance.randrange(number)
        draft.apply({"epoch": draft.epoch, "edits": sent[since:]})
        draft.apply({"epoch": "another tab's", "edits": sent})
    assert draft.ack == length
    return draft


@pytest.mark.parametrize("tens", range(20))
def test_picture_state_and_link_agree_after_any_edits(tens):
    for seed in range(10 * tens, 10 * tens + 10):
        name = CASES[seed % len(CASES)]
        draft = played(name, seed)
        back = link.decode(link.encode(draft.state, False))
        assert back.problems == ()
        assert back.state.same(draft.state), seed
        wrong = draft.state.problems()
        if wrong:
            draft.reset()
        found = compared(link.decode(link.encode(draft.state, False)).state)
        kind = draft.scenario.telltale.kind
        data = view(draft, kind=kind, covered=False)
        assert len(data["rows"]) == found.batch.rows
        wanted = (found.correct.advantage, found.faulty.advantage)
        for values, trace in zip(data["panels"][0]["engines"], wanted):
            shown = [float("inf") if v is None else v for v in values]
            assert shown == pytest.approx(trace.tolist(), rel=1e-5, abs=1e-6)
        at = [c[0] for c in data["columns"]].index("reward")
        cells = [row[at] for row in data["rows"]]
        assert cells == list(draft.table["reward"])
