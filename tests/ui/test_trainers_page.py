"""The page Trainers, the batch it opens, and the four words of a bug's page."""

import re
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from gradebook.analysis.comparison import compared
from gradebook.analysis.law_check import words
from gradebook.bugs import BUGS
from gradebook.cases.link import decode
from gradebook.cases.scenario import by_trainer, load
from gradebook.trainers.releases import newest
from gradebook.ui.parts.affected import last_seen, status


def areal():
    (line,) = (x for x in newest() if x["setting"] == "group mean, group std")
    return line


def script(text):
    at = AppTest.from_string(text, default_timeout=600).run()
    assert not at.exception
    return at


def test_the_page_lists_the_newest_releases_and_filters_them():
    at = script("from gradebook.ui.pages.trainers import trainers\ntrainers()")
    assert len(at.dataframe[0].value) == len(newest())
    at.selectbox[2].select("partial_groups").run()
    found = at.dataframe[0].value
    assert set(found["trainer"]) == {"AReaL 1.0.4"}
    assert set(found["order"]) == {"✕ broken"}


def test_a_broken_batch_opens_in_the_sandbox_with_the_measured_settings():
    shown = areal()["bugs"]["partial_groups"]
    query = dict(parse_qsl(shown["link"].partition("?")[2]))
    opened = decode(query, default="sandbox")
    assert not opened.problem and opened.state.bugs == ("partial_groups",)
    batch = opened.state.batch()
    rewards = [reward for group in shown["rewards"] for reward in group]
    assert batch.reward.tolist() == rewards
    assert batch.settings.eps == 1e-5
    assert batch.settings.group_size == max(map(len, shown["rewards"]))
    # The faulty engine gives the trainer's own numbers, the correct one does not.
    both = compared(opened.state)
    trainers = [a for group in shown["advantages"] for a in group]
    assert both.faulty.advantage.tolist() == pytest.approx(trainers, rel=1e-3)
    assert both.correct.advantage.tolist() != pytest.approx(trainers, rel=1e-3)


def test_a_cell_of_the_table_shows_its_batches_with_both_engines_and_its_history():
    def text_of(column):
        at = script(
            "from gradebook.ui.pages.trainers import _line\n"
            "from gradebook.trainers.releases import newest\n"
            "line = next(x for x in newest() if x['package'] == 'areal')\n"
            f"_line(line, {column!r})"
        )
        return " ".join(one.value for one in at.markdown)

    broken = [words(law) for law in areal()["shown"]]
    every, bugs, lost = map(text_of, ("setting", "bugs", "lost row"))
    for text in (every, bugs, lost):
        assert "Open this batch in the sandbox" in text and "Its history" in text
    reported = "Reported in AReaL: [AReaL issue 1419]"
    assert reported in every and reported in bugs and reported not in lost
    assert len(broken) == 7 and all(law in every for law in broken)
    assert [law for law in broken if law in lost] == [words("lost_row")]
    assert not any(law in bugs for law in broken)


def test_the_history_says_release_by_release_what_changed():
    """TRL 1.6.0 leaves a missing reward out, which TRL 1.5.1 took for 0."""
    at = script(
        "from gradebook.ui.pages.trainers import _history\n"
        "from gradebook.trainers.releases import newest\n"
        "_history(next(x for x in newest() if x['setting'].endswith('group')))"
    )
    text = " ".join(one.value for one in at.markdown)
    (change,) = re.findall(r"\*\*1\.6\.0\*\*, after 1\.5\.1: (.*)", text)
    assert "a missing reward: counts as 0 → left out" in change
    assert "missing: ✕ broken → ✓" in change and "Unscored rows" in change
    (html,) = (one.value for one in at.get("html"))
    assert "divided\N{NO-BREAK SPACE}by" in html and "<td>group_std</td>" in html


def test_the_answers_to_am_i_affected():
    word, sentence = status("partial_groups", "areal", "1.0.4")
    assert word == "has it" and "If switched on: `" in sentence
    assert status("partial_groups", "verl", "0.9.1")[0] == "not seen on these batches"
    word, sentence = status("partial_groups", "verl", "0.9.2")
    assert word == "not measured" and "Last seen in" in sentence
    assert status("zero_std_kl", "verl", "0.9.1")[0] == "not reported"
    assert last_seen("partial_groups").startswith("AReaL 1.0.4 (")

    # TRL 1.5.1 is the last that measured as such; a default setting.
    word, sentence = status("unscored_rows", "trl", "1.5.1")
    assert word == "has it" and "By default: `" in sentence
    word, sentence = status("unscored_rows", "trl", "1.16.0")
    assert word == "fixed" and "1.16.0 does not have it (code run on" in sentence

    # One flag, measured with its default settings and with others: said once.
    _, sentence = status("whole_batch", "miles-rl", "0.0.2")
    by_default, _, _ = sentence.partition("If switched on")
    assert by_default.startswith("Measured on ") and "By default: `" in by_default
    assert sentence.count("`--advantage-estimator grpo`") == 1


def test_home_answers_for_all_bugs_at_once():
    at = script(
        "from gradebook.ui.parts.affected import affected_bugs\naffected_bugs()"
    )
    at.selectbox[0].select("areal").run()
    assert not at.exception
    tables = [
        dict(re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', html.value))
        for html in at.get("html")
    ]
    reported, rest = tables[0], tables[-1]
    assert reported["Partial groups"] == "has it"  # reports about the trainer first
    assert {*reported} == {load(bug).title for bug in by_trainer()["AReaL"]}
    assert sum(map(len, tables)) == len(BUGS)
    assert rest["Zero-std KL"] == "not reported"


def test_a_bugs_page_asks_for_trainer_and_version(visit):
    page = visit("partial_groups").end("affected")
    assert page.widget("affected-partial_groups").value == "areal"
    first = "**Yes, areal 1.0.4 has it.** Measured on"
    assert first in page.text
    assert "The report: fixed in v2.0.0 (2026-07-02)." in page.text
    page.widget("affected-partial_groups").select("verl")
    page.run()
    assert "**verl 0.9.1 did not show it on the measured batches.**" in page.text
    assert f"Last seen in {last_seen('partial_groups')}" in page.text
    page.widget("affected-partial_groups-verl").select("0.4.1")
    assert "**verl 0.4.1 did not show it on the measured batches.**" in page.run().text

    # The choice holds on the other pages, and comes back from the cookie.
    page = page.go("rejected_rows").end("affected")
    assert page.widget("affected-rejected_rows").value == "verl"
    assert page.widget("affected-rejected_rows-verl").value == "0.4.1"
    assert "**Reported for verl 0.4.1.**" in page.text
    own, others = page.text.index("**verl (PR 6452):**"), page.text.index("**NeMo-RL")
    assert own < page.text.index("**Measured releases:**") < others


def test_a_page_of_what_rewards_cannot_show_reads_the_report(visit):
    page = visit("zero_std_kl").end("affected")
    assert "**Yes, trl 1.16.0 has it.** PR 5640: disputed" in page.text
    assert "**TRL (PR 5640):** Disputed" in page.text.replace("\\", "")
    assert "Last seen in" not in page.text
