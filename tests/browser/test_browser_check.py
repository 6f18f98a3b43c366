"""Check your run, in a browser, with real files."""

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from conftest import Reader
from playwright.sync_api import expect

import gradebook

pytestmark = pytest.mark.long  # not yet seen green since the board came

REAL = Path(__file__).parents[1] / "logs" / "trl-group"


@pytest.fixture
def visitor(desktop, server):
    reader = Reader(desktop, server)
    reader.page.goto(f"{server.url}/check")
    heading = reader.page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Check your run", timeout=60_000)
    reader.settled()
    yield reader
    reader.page.close()
    assert reader.complaints() == []


@pytest.fixture
def faulty_log(tmp_path):
    """Two steps cut by stride: the second is the report's [4, 4, 3, 1]."""
    rewards = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 0.0, 3.0, 0.0, 1.0, 2.0, 100.0]
    prompts = [list("aaaabbbbcccc"), list("aaaabbbbcccd")]
    parts = []
    for step, names in enumerate(prompts):
        settings = gradebook.Settings(eps=1e-5, group_size=4)
        batch = gradebook.Batch(names, rewards, settings=settings)
        engine = gradebook.bug("partial_groups").engine
        advantage = gradebook.run(engine, batch).advantage
        frame = {"global_step": step, "uid": names, "score": rewards}
        frame["adv"] = advantage.to(torch.float32).tolist()
        parts.append(pd.DataFrame(frame))
    path = tmp_path / "run.csv"
    pd.concat(parts).to_csv(path, index=False)
    return path


def check(reader, *files):
    page = reader.page
    page.locator("input[type=file]").set_input_files(list(map(str, files)))
    page.get_by_role("button", name="Check", exact=True).click()
    verdict = page.get_by_role("heading", name="The verdict")
    expect(verdict).to_be_visible(timeout=30_000)


def test_a_real_trl_log_is_correct(visitor):
    check(visitor, *sorted(REAL.glob("*.parquet")))
    answer = visitor.page.get_by_role("heading", level=4)
    expect(answer).to_contain_text("GRPO advantages in TRL's convention")
    expect(answer).to_contain_text("12 of 12 steps")
    with visitor.page.expect_download() as waiting:
        visitor.page.get_by_role("button", name="Verdict as JSON").click()
    told = json.loads(waiting.value.path().read_text("utf-8"))
    assert told["verdict"] == "correct"
    assert told["weights"] == pytest.approx([1.0, 0.5], abs=1e-3)


def test_a_suspect_is_named_and_its_step_opens_on_the_bugs_page(
    visitor, faulty_log
):
    check(visitor, faulty_log)
    page = visitor.page
    answer = page.get_by_role("heading", level=4)
    expect(answer).to_contain_text("fixed-stride grouping")
    page.get_by_role("button", name="Open step 1 on the page").click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Partial groups", timeout=60_000)
    # TRUTH: row 10 is -0.480 faulty, +1.000 correct.
    visitor.marks(correct={10: 1.0}, faulty={10: -0.480})


def test_a_file_that_is_no_log_is_refused_in_words(visitor, tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 not a parquet file")
    page = visitor.page
    page.locator("input[type=file]").set_input_files(str(broken))
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("broken.parquet")
    expect(page.get_by_role("heading", name="The verdict")).to_have_count(0)
