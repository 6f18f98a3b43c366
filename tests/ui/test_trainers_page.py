"""The page Trainers, the batch it opens, and the four words of a bug's page."""

from urllib.parse import parse_qsl

from streamlit.testing.v1 import AppTest

from gradebook.cases.link import decode
from gradebook.trainers.releases import newest
from gradebook.ui.pages.trainers import link
from gradebook.ui.parts.affected import last_seen, status


def areal():
    (line,) = (x for x in newest() if x["setting"] == "group mean, group std")
    return line


def test_the_page_lists_the_newest_releases_and_filters_them():
    at = AppTest.from_string(
        "from gradebook.ui.pages.trainers import trainers\ntrainers()",
        default_timeout=60,
    ).run()
    assert not at.exception
    assert len(at.dataframe[0].value) == len(newest())
    at.selectbox[2].select("partial_groups").run()
    found = at.dataframe[0].value
    assert set(found["trainer"]) == {"AReaL 1.0.4"}
    assert set(found["order"]) == {"✕ broken"}


def test_a_broken_batch_opens_in_the_sandbox_with_the_measured_settings():
    line = areal()
    address = link(line["bugs"]["partial_groups"], line, "partial_groups")
    found = decode(dict(parse_qsl(address.partition("?")[2])), default="sandbox")
    assert not found.problems
    assert found.state.bugs == ("partial_groups",)
    batch = found.state.batch()
    assert batch.reward.tolist() == [1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 0]
    assert batch.settings.eps == 1e-5 and batch.settings.group_size == 4


def test_the_four_words():
    assert status("partial_groups", "areal", "1.0.4").word == "seen"
    assert "opt-in" in status("partial_groups", "areal", "1.0.4").sentence
    assert status("partial_groups", "verl", "0.9.1").word == "not seen on these batches"
    assert status("partial_groups", "verl", "0.9.2").word == "not measured"
    assert status("zero_std_kl", "verl", "0.9.1").word == "not measurable this way"
    assert last_seen("partial_groups").startswith("AReaL 1.0.4 (")

    # TRL 1.5.1 is the last that measured as such; a default setting.
    unscored = status("unscored_rows", "trl", "1.5.1")
    assert unscored.word == "seen" and "(the default)" in unscored.sentence
    later = status("unscored_rows", "trl", "1.16.0")
    assert later.word == "not seen on these batches"
    assert later.sentence.endswith("Last seen in trl 1.5.1.")


def test_a_bugs_page_asks_for_trainer_and_version(visit):
    page = visit("partial_groups").end("affected")
    assert page.widget("affected-partial_groups").value == "areal"
    assert "**Seen.** Measured on" in page.text and "(opt-in)" in page.text
    # Where it was measured, that stands in place of the versions by hand.
    assert f"**Last seen in:** {last_seen('partial_groups')}" in page.text
    assert "later versions where Normalization" not in page.text
    page.widget("affected-partial_groups").select("verl")
    page.run()
    assert "**Not seen on these batches.**" in page.text
    page.widget("affected-partial_groups-verl").select("0.4.1")
    assert "**Not seen on these batches.**" in page.run().text


def test_a_page_of_what_rewards_cannot_show_keeps_its_versions(visit):
    page = visit("zero_std_kl").end("affected")
    assert "**Not measurable this way.**" in page.text
    assert "**Versions:**" in page.text and "Last seen in" not in page.text
