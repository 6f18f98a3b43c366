"""The hour's plan on the lead's page."""

import pytest

import gradebook
from gradebook.cases.link import decode
from gradebook.classroom.plan import plan
from gradebook.ui.rooms import seat as widgets


@pytest.fixture
def sheet(visit):
    return visit("session")


def test_the_page_has_the_whole_hour(sheet):
    titles = [e.value for e in sheet.app.subheader]
    text = sheet.text.replace("\u2212", "-")  # the minus sign
    for step in plan():
        end = step.begin + step.minutes
        time = f"{step.begin:02d}\u2013{end:02d} min"
        if step.begin < 0:
            time = "Not in this plan"
        assert any(t.startswith(time) for t in titles)
        assert step.ask in text and step.why in text


def test_a_lead_takes_a_plan_from_the_shelf_or_makes_one(visit):
    page = visit("session")

    def steps():
        """(begin, end) of the plan's steps, and the titles between the
        opening and the closing."""
        found = [e.value.split(" · ", 1) for e in page.app.subheader]
        held = [(t, said) for t, said in found if t.endswith("min")]
        times = [tuple(map(int, t[:-4].split("\u2013"))) for t, _ in held]
        return times, [said.replace("\\", "") for _, said in held[1:-1]]

    def adds_up(minutes):
        times, titles = steps()
        assert times[0][0] == 0 and times[-1][1] == minutes
        assert all(a[1] == b[0] for a, b in zip(times, times[1:]))
        return {title.split(":")[0] for title in titles}

    assert adds_up(60) >= {"Partial groups", "Zero-std KL"}
    page.put("plan", "trainer-TRL")
    # TRL has three bugs; the plan still takes the hour.
    assert adds_up(60) == {"Swapped scale", "Unscored rows", "Zero-std KL"}
    page.put("minutes", 25)
    assert adds_up(25) == {"Swapped scale", "Unscored rows", "Zero-std KL"}
    page.put("minutes", 17)
    # Four to open, five to close, three for each bug.
    assert "3 bugs take at least 18 minutes, 17 are too few." in page.text
    assert page.widget("plan").value == "trainer-TRL"
    page.put("plan", "own")
    assert "Choose the bugs of your plan." in page.text
    page.put("bugs", ["fan_out"])
    assert adds_up(17) == {"Fan-out"}
    # A lead who opens a case comes back to the plan.
    page.go("fan_out").go("session")
    assert adds_up(17) == {"Fan-out"}


def test_each_step_is_a_link_to_its_case_or_its_training_runs(sheet):
    links = [
        dict(pair.split("=") for pair in e.proto.query_string.split("&"))
        for e in sheet.app.get("page_link")
        if e.proto.query_string
    ]
    queries = [q for q in links if "s" in q]
    opened = [q for q in queries if "present" not in q]
    presented = [q for q in queries if q.get("present") == "1"]
    named = {step.scenario for step in plan() if step.scenario}
    after = {step.next for step in plan() if step.next}
    assert {q["s"] for q in presented} == named
    assert {q["s"] for q in opened} == named | after
    for query in queries:
        found = decode(query, others=("room", "present"))
        assert found.covered and found.problems == ()
    trained = [q["bug"] for q in links if "s" not in q]
    assert trained == [step.bug for step in plan() if step.trains]


def test_a_plan_of_ones_own_has_a_link(visit):
    address = {"plan": "Bugs that I choose", "bugs": "Fan\\-out", "minutes": "20"}
    page = visit("session", **address)
    titles = [e.value for e in page.app.subheader]
    assert titles[1].startswith("04") and "Fan-out" in titles[1].replace("\\", "")
    assert titles[2].startswith("15\u201320 min")


def test_the_lead_sees_how_far_the_plan_has_come(visit):
    page = visit("session", {"seat": "a-lead"})
    page.app.button(key="room-open").click()
    code = page.run().app.session_state["room"]
    count = sum(step.begin >= 0 for step in plan())
    assert f"0 of {count} questions revealed" in page.text
    first, second, third = plan()[1:4]
    widgets.rooms().reveal(code, "a-lead", first.question)
    assert f"1 of {count} questions revealed" in page.run().text
    assert [e.value for e in page.app.subheader][1].endswith("✓")
    page.go(first.bug)
    assert f"Step 2 of {count}" in page.text
    # The hour's second case is on the same page, the third step on another.
    page.app.button(key="plan-next").click()
    assert f"Step 3 of {count}" in page.run().text
    assert widgets.rooms().room(code).position.question == second.question
    page.click("plan-next")
    assert widgets.rooms().room(code).position.question == third.question
    widgets.rooms().close(code, "a-lead")


def test_there_is_a_handout_for_every_bug(sheet):
    keys = {e.key for e in sheet.app.get("download_button")}
    assert keys == {f"handout-{bug}" for bug in gradebook.BUGS}
