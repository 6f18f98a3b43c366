"""Whatever a browser sends about a draft, each edit is carried out once."""

from threading import Thread

from hypothesis import given
from hypothesis import strategies as some

import gradebook
from gradebook.ui.board.component import taken
from gradebook.ui.parts.drafts import PageDraft

CASE = gradebook.load("rejected_rows")  # one prompt, rewards 100, 1, 2


def cell(value, **more):
    return {"do": "cell", "row": 0, "column": "reward", "value": value, **more}


def send(draft, *edits):
    """A message with these edits, which have their numbers."""
    return taken(draft, {"epoch": draft.channel.epoch, "edits": list(edits)})


def rewards(draft):
    return [state.table["reward"][0] for state in draft.history.states]


def test_what_is_no_message_about_this_draft_changes_nothing():
    draft = PageDraft(CASE)
    other = {"epoch": PageDraft(CASE).channel.epoch, "edits": [{"n": 1, **cell("7")}]}
    for message in (None, "x", 7, [], {}, {"epoch": None}, other):
        taken(draft, message)
    unnumbered = [None, 7, {"do": "undo"}, {"n": "1"}, {"n": True, **cell("7")}]
    for edits in (None, unnumbered):
        taken(draft, {"epoch": draft.channel.epoch, "edits": edits})
    assert draft.channel.ack == 0 and draft.history.states == [draft.origin]


def test_an_edit_that_cannot_be_carried_out_is_taken_all_the_same():
    draft = PageDraft(CASE)
    send(draft, {"n": 1, "do": "explode"})
    assert draft.channel.ack == 1 and len(draft.notes) == 1
    send(draft, {"n": 2, **cell("7")})
    assert draft.notes == [] and rewards(draft) == ["100", "7"]


def test_an_act_of_the_page_is_given_its_edit_and_a_message_is_noted():
    """The note is taken after the edits and before the board is made."""
    draft, log = PageDraft(CASE), []
    draft.channel.acts = {"stage": lambda edit: log.append(edit["stage"])}
    draft.channel.note = lambda: log.append("noted")
    draft.channel.board = lambda: {"log": list(log)}
    shown = send(draft, {"n": 1, "do": "stage", "stage": "group"})
    assert shown == {"log": ["group", "noted"], "version": 1, "behind": True}


EDITS = some.one_of(
    some.builds(cell, some.sampled_from(["1", "2.5", "x"])),
    some.builds(cell, some.sampled_from(["3", "4"]), gesture=some.integers(0, 2)),
    some.sampled_from([{"do": "undo"}, {"do": "redo"}, {"do": "add", "row": 0}]),
)


@given(some.data(), some.lists(EDITS, min_size=1, max_size=40))
def test_a_browser_that_repeats_its_edits_gets_the_same_batch(data, edits):
    once, again = PageDraft(CASE), PageDraft(CASE)
    sent = [{"n": number, **edit} for number, edit in enumerate(edits, 1)]
    for edit in sent:
        send(once, edit)
    while again.channel.ack < len(sent):
        ack = again.channel.ack
        last = data.draw(some.integers(ack + 1, len(sent)))
        first = data.draw(some.integers(0, ack))
        for message in (sent[first:last], sent[first:last], sent[:first]):
            send(again, *message)
    assert again.channel.ack == once.channel.ack
    assert again.history == once.history


def thread_of(draft):
    """A thread that has begun to send an edit."""
    thread = Thread(target=send, args=(draft, {"n": 1, **cell("7")}), daemon=True)
    thread.start()
    return thread


def test_edits_of_two_learners_are_computed_one_after_the_other():
    one, two = PageDraft(CASE), PageDraft(CASE)
    seen = {}

    def board():
        other = seen["other"] = thread_of(two)
        other.join(1)
        seen["two has waited"] = rewards(two) == ["100"]
        return {}

    one.channel.board = board
    send(one, {"n": 1, **cell("7")})
    seen["other"].join(300)
    assert seen["two has waited"] and rewards(two) == ["100", "7"]


def test_an_edit_that_waits_for_its_page_holds_up_nobody():
    drawn, other = PageDraft(CASE), PageDraft(CASE)
    with drawn.lock:  # as while its page is drawn
        waits = thread_of(drawn)
        waits.join(1)
        thread_of(other).join(300)
        assert rewards(other) == ["100", "7"] and rewards(drawn) == ["100"]
    waits.join(300)
    assert rewards(drawn) == ["100", "7"]
