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


def test_affected_asks_for_trainer_and_version():
    def script():
        from gradebook.ui.parts.affected import affected

        affected("partial_groups")

    at = AppTest.from_function(script, default_timeout=60).run()
    at.selectbox[0].select("areal").run()
    assert "**Seen.**" in at.markdown[0].value
