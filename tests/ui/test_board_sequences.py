"""Whatever is done to the board, its picture, the server's state and the link
agree at the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gradebook.analysis.comparison import compared
from gradebook.cases import link
from gradebook.cases.edits import ACTS
from gradebook.cases.scenario import load
from gradebook.ui.board.view import view
from gradebook.ui.parts.drafts import Draft

CASES = ("rejected_rows", "partial_groups", "double_normalization")
ROWS = some.integers(-1, 5)
EDIT = some.fixed_dictionaries(
    {
        "do": some.sampled_from([*ACTS, *["cell"] * 8]),
        "row": ROWS,
        "to": ROWS,
        "column": some.sampled_from([*["reward"] * 4, "prompt", "t1", "eos"]),
        "value": some.sampled_from(["1", "-2.5", "1e9", "1,5", "", "B", True]),
        "start": some.integers(0, 2),
        "stop": ROWS,
        "text": some.sampled_from(["1\n2\n3", "B\t4", "", "x"]),
        "tokens": some.integers(1, 5),
        "at": some.integers(0, 9),
    },
    optional={"gesture": some.integers(0, 2)},
)


@given(some.sampled_from(CASES), some.lists(EDIT, max_size=25))
def test_picture_state_and_link_agree_after_any_edits(name, sent):
    draft = Draft(load(name))
    for number, edit in enumerate(sent, 1):
        draft.apply({"epoch": draft.epoch, "edits": [{"n": number, **edit}]})
    shared = link.decode(link.encode(draft.state, False)).state
    comparison, kind = compared(shared), draft.scenario.telltale.kind
    data = view(draft, kind=kind, covered=False)
    assert len(data["rows"]) == comparison.batch.rows and not data["stale"]
    wanted = (comparison.correct.advantage, comparison.faulty.advantage)
    for values, trace in zip(data["panels"][0]["engines"], wanted):
        shown = [float("inf") if v is None else v for v in values]
        assert shown == pytest.approx(trace.tolist(), rel=1e-5, abs=1e-6)
    at = [column[0] for column in data["columns"]].index("reward")
    assert [row[at] for row in data["rows"]] == list(draft.table["reward"])
