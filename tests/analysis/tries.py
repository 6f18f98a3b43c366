"""Attempts at challenges, and what is said of them."""

import gradebook
from gradebook.analysis.challenges import apply_solution, judge
from gradebook.cases.challenge import Challenge, Change
from gradebook.cases.schema import read
from gradebook.cases.state import start


def state(name):
    return start(gradebook.load(name))


def tried(name, title, *changes):
    """The verdict of a challenge of a scenario after some changes."""
    (challenge,) = (c for c in gradebook.load(name).challenges if c.title == title)
    return judge(challenge, apply_solution(state(name), changes))


def judged(name, changes, *conditions, edits=None):
    """What a challenge of these conditions misses after some changes; ""
    where it is solved."""
    document = {
        "title": "x",
        "goal": "y",
        "insight": "z",
        "solved": list(conditions),
        "solution": [{"remove_row": 0}],
    }
    challenge = read(Challenge, document | ({"edits": edits} if edits else {}))
    found = judge(challenge, apply_solution(state(name), changes))
    assert found.solved == (found.missing == "")
    return found.missing


def reward(row, value):
    return Change(row=row, column="reward", value=value)
