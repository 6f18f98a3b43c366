"""The map shows each stage in order and each bug at the stage it breaks."""

import re
import xml.etree.ElementTree as ET

import pytest

import gradebook
from gradebook.engine.pipeline import STAGES
from gradebook.output.pipeline_map import (
    Picture,
    map_file,
    tall_map,
    wide_map,
)

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = Picture(lambda name: f"at/{name}", done={"partial_groups"})


def drawn(shape):
    return ET.fromstring(shape(PICTURE))


def texts(node):
    """(x, y, what it says) of each line of text."""
    return [
        (float(span.get("x")), float(span.get("y")), span.text)
        for span in node.iter(f"{SVG}tspan")
    ]


def places(root, shape):
    """Stage -> where it stands along the pipe."""
    axis = 0 if shape is wide_map else 1
    mono = [t for t in root.iter(f"{SVG}text") if "Code" in t.get("font-family")]
    found = {said: (x, y) for text in mono for x, y, said in texts(text)}
    return {stage: found[stage][axis] for stage in STAGES}


@pytest.mark.parametrize("shape", [wide_map, tall_map])
def test_every_bug_is_a_link_at_its_stage(shape):
    root = drawn(shape)
    at = places(root, shape)
    assert [*at] == sorted(at, key=at.get)
    links = {link.get("data-name"): link for link in root.iter(f"{SVG}a")}
    assert set(links) == {*gradebook.BUGS}
    for name, link in links.items():
        one = gradebook.bug(name)
        assert link.get("href") == f"at/{name}"
        own = texts(link)
        said = " ".join(text for *_, text in own)
        stands = one.statuses or (one.status,)
        assert one.title in said and all(word in said for word in stands)
        where = own[0][0 if shape is wide_map else 1]
        before = [stage for stage in STAGES if at[stage] <= where]
        assert before[-1] == one.stage
        assert ("✓" in said) == (name == "partial_groups")


def test_numbers_are_those_of_the_first_answer():
    """Rewards 1 0 0 1: mean 0.5, deviation sqrt(1 / 3)."""
    said = [text for *_, text in texts(drawn(wide_map))]
    assert said.count("+0.866") == 2
    assert "0.500" in said and "0.577" in said


def test_no_text_leaves_the_picture():
    """A letter takes about half of its size."""
    for shape in (wide_map, tall_map):
        root = drawn(shape)
        *_, width, height = map(float, root.get("viewBox").split())
        for text in root.iter(f"{SVG}text"):
            size = float(text.get("font-size"))
            for x, y, said in texts(text):
                room = x if text.get("text-anchor") == "end" else width - x
                assert len(said) * size * 0.5 <= room, said
                assert 0 < y < height


def test_bugs_of_a_stage_do_not_overlap():
    for shape in (wide_map, tall_map):
        boxes = [
            tuple(float(r.get(k)) for k in ("x", "y", "width", "height"))
            for r in drawn(shape).iter(f"{SVG}rect")
        ]
        assert len(boxes) == len(gradebook.BUGS)
        for i, (x, y, w, h) in enumerate(boxes):
            for a, b, c, d in boxes[:i]:
                apart = x >= a + c or a >= x + w or y >= b + d or b >= y + h
                assert apart


def test_the_file_stands_alone_with_whole_addresses():
    text = map_file("http://host:8501")
    root = ET.fromstring(text)
    assert root.get("width") and root.get("color")
    links = [link.get("href") for link in root.iter(f"{SVG}a")]
    assert {*links} == {f"http://host:8501/{n}" for n in gradebook.BUGS}
    assert not re.search(r"<script|<image|url\(", text)
