"""A link to a page works on a server that nobody has visited."""

import pytest
from conftest import Reader
from playwright.sync_api import expect

import gradebook

TITLES = {bug: gradebook.load(bug).title for bug in gradebook.BUGS}


@pytest.mark.long
def test_a_deep_link_is_the_first_visit(desktop, fresh_server):
    bug = gradebook.BUGS[0]
    reader = Reader(desktop, fresh_server).open(bug, TITLES[bug])
    page = reader.page
    assert page.url.partition("?")[0] == f"{fresh_server.url}/{bug}"
    bar = page.get_by_role("navigation")
    expect(bar).to_have_count(1)
    expect(bar.get_by_role("link", name="Home")).to_be_visible()
    expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)
    bar.get_by_role("button", name="The bugs").click()
    listed = page.get_by_role("menuitem")
    expect(listed).to_have_count(len(TITLES))
    assert sorted(listed.all_inner_texts()) == sorted(TITLES.values())
    page.close()
    assert reader.complaints() == []
