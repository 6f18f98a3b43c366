"""The map's file shows each stage in order and each bug at the stage it breaks."""

import xml.etree.ElementTree as ET

import gradebook
from gradebook.engine.pipeline import STAGES
from gradebook.output.figures import map_file

SVG = "{http://www.w3.org/2000/svg}"
BASE = "http://host:8501"


def drawn():
    return ET.fromstring(map_file(BASE))


def texts(node):
    """(x, y, what it says) of each line of text."""
    return [
        (float(span.get("x")), float(span.get("y")), span.text)
        for span in node.iter(f"{SVG}tspan")
    ]


def test_every_bug_is_a_link_at_its_stage():
    root = drawn()
    mono = [t for t in root.iter(f"{SVG}text") if "Code" in t.get("font-family")]
    places = {said: x for text in mono for x, _, said in texts(text)}
    at = {stage: places[stage] for stage in STAGES}
    assert [*at] == sorted(at, key=at.get)
    links = {link.get("data-name"): link for link in root.iter(f"{SVG}a")}
    assert set(links) == {*gradebook.BUGS}
    for name, link in links.items():
        one = gradebook.bug(name)
        assert link.get("href") == f"{BASE}/{name}"
        lines = texts(link)
        said = " ".join(text for *_, text in lines)
        stands = [status.words.split()[0] for status in one.status]
        assert one.title in said and all(word in said for word in stands)
        before = [stage for stage in STAGES if at[stage] <= lines[0][0]]
        assert before[-1] == one.stage


def test_bugs_of_a_stage_do_not_overlap():
    boxes = [
        tuple(float(r.get(k)) for k in ("x", "y", "width", "height"))
        for r in drawn().iter(f"{SVG}rect")
        if r.get("class") == "ground"
    ]
    assert len(boxes) == len(gradebook.BUGS)
    for i, (x, y, w, h) in enumerate(boxes):
        for a, b, c, d in boxes[:i]:
            assert x >= a + c or a >= x + w or y >= b + d or b >= y + h
