"""Edits that a browser posts to the server, and the answers to them."""

import json
import threading

import pytest
from starlette.requests import Request
from ui.answered import answered

from gradebook.ui.board import component

EDIT = {"do": "cell", "row": 11, "column": "reward", "value": "0"}


def posted(epoch, body):
    """Status and text of the answer to a browser's POST."""

    async def receive():
        return {"type": "http.request", "body": body}

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [],
        "path_params": {"epoch": epoch},
    }
    answer = answered(component.answer(Request(scope, receive)))
    return answer.status_code, answer.body.decode()


def sent(page, **edit):
    """Posts the page's next edit. What the board is to show."""
    data = page.board
    edits = [{"n": data["ack"] + 1, **EDIT, **edit}]
    body = json.dumps({"epoch": data["epoch"], "edits": edits}).encode()
    status, text = posted(data["epoch"], body)
    assert status == 200
    return json.loads(text)


def test_the_answer_to_an_edit_is_what_the_page_draws_next(visit):
    page = visit("partial_groups")
    found = sent(page)
    # Rows 8 to 11 are 0 1 2 0: mean 0.75, std sqrt(2.75 / 3) (+ 1e-5).
    faulty = found["panels"][0]["engines"][1]
    assert faulty[8:] == pytest.approx([-0.783341, 0.261114, 1.305569, -0.783341])
    assert found["rows"][11][1] == "0" and found["ack"] == 1
    drawn = page.run().board
    assert drawn.pop("made") > found.pop("made")
    assert drawn == found


MANY = json.dumps({"edits": [{"n": 1, **EDIT}] * 20_000}).encode()


def test_a_draft_that_no_session_has_is_not_found():
    assert posted("nobody", b"[" * 100_000)[0] == 404


@pytest.mark.parametrize(
    "body, status",
    [(b"", 400), (b"{", 400), (b"\xff", 400), (b"[" * 100_000, 400), (MANY, 413)],
    ids=["empty", "torn", "no text", "nested", "many"],
)
def test_a_message_that_is_too_much_or_no_json_is_refused(visit, body, status):
    page = visit("partial_groups")
    assert posted(page.board["epoch"], body)[0] == status
    assert page.run().board["ack"] == 0


@pytest.mark.parametrize("body", [b"7", b"[]", b'{"edits": [3]}'])
def test_a_message_that_is_no_edit_changes_nothing(visit, body):
    page = visit("partial_groups")
    before = page.board
    status, text = posted(before["epoch"], body)
    found = json.loads(text)
    assert status == 200 and found.pop("made") > before.pop("made")
    assert found == before


def test_an_edit_waits_while_the_page_is_drawn(visit):
    page = visit("partial_groups")
    draft = page.app.session_state["drafts"]["partial_groups"]
    edit = threading.Thread(target=sent, args=(page,))
    with draft.lock:  # as a run of the page holds it
        edit.start()
        edit.join(0.2)
        assert not draft.edited
    edit.join()
    assert draft.edited
