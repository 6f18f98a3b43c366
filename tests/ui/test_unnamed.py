"""What comes after a bug: one more batch, a checkpoint, a missed bug once again."""

import pytest

from gradebook.analysis import quiz
from gradebook.cases.scenario import load
from gradebook.cases.state import TEXTS
from gradebook.core.settings import FLAGS
from gradebook.ui.parts import unnamed
from gradebook.ui.parts.drafts import PROGRESS, SKIPPED, Guess, Progress

ORDER = ("partial_groups", "double_normalization", "no_eos_outliers", "rejected_rows")


def after(count, wrong=()):
    """A learner who has predicted so many bugs, some of them wrongly."""
    progress = Progress()
    for name in ORDER[:count]:
        right = load(name).prediction.answer
        progress.answer(name, (right + 1) % 2 if name in wrong else right)
    return progress


def test_a_checkpoint_is_due_after_three_bugs_and_is_judged_once():
    assert not unnamed.checkpoint_due(after(2))
    progress = after(3)
    assert unnamed.checkpoint_due(progress) == 3
    progress.unnamed["checkpoint-3"] = False
    assert not unnamed.checkpoint_due(progress)


def test_a_missed_prediction_comes_back_once_and_a_skipped_one_does_not():
    missed = ORDER[0]
    assert unnamed.comeback_due(after(2, {missed})) is None
    progress = after(3, {missed})
    case = unnamed.comeback_due(progress)
    assert case.bug == missed and case.variant
    progress.unnamed[case.name] = False
    assert unnamed.comeback_due(progress) is None
    skipped = after(4)
    skipped.guesses[missed] = Guess(SKIPPED)
    assert unnamed.missed(skipped) == [] and unnamed.comeback_due(skipped) is None


def test_a_checkpoint_is_answered_in_place(visit):
    page = visit(ORDER[2], {PROGRESS.name: after(3)})
    assert page.app.button(key="checkpoint").label.startswith("Checkpoint after 3")
    with pytest.raises(KeyError):
        page.app.button(key="next-bug")
    page.app.button(key="checkpoint").click()
    page.run()
    case, asked = quiz.checkpoint(ORDER[:3])
    assert case.title not in page.text and case.claim not in page.text
    page.app.button(key=f"checkpoint-{asked.answer}").click()
    page.run()
    assert "Right." in page.text
    assert page.app.session_state[PROGRESS.name].unnamed == {"checkpoint-3": True}
    assert page.app.button(key="next-bug")


def test_a_solved_challenge_offers_another_batch_without_its_name(visit):
    progress = after(1)
    page = visit(ORDER[0], {PROGRESS.name: progress})
    assert "transfer" not in [button.key for button in page.app.button]
    progress.solved[ORDER[0]] = {0}
    page.run()
    page.app.button(key="transfer").click()
    page.run()
    case = quiz.another(ORDER[0], ORDER[:1])
    assert unnamed.FROM_A_BATCH in page.text and case.title not in page.text
    asked = quiz.where(case)
    wrong = (asked.answer + 1) % len(asked.choices)
    page.app.button(key=f"unnamed-{case.name}-{wrong}").click()
    page.run()
    assert "Not quite." in page.text
    assert page.app.session_state[PROGRESS.name].unnamed == {case.name: False}


def test_a_checkpoint_says_its_settings_in_sentences(visit):
    page = visit(ORDER[2], {PROGRESS.name: after(3)})
    page.app.button(key="checkpoint").click()
    page.run()
    (line,) = (x.value for x in page.app.caption if x.value.startswith("Settings."))
    assert "Unfinished rows may earn an advantage" in line
    assert "If the trainer normalizes a second time, then over kept" in line
    assert "ddof" not in line and "eps" not in line.replace("steps", "")


@pytest.mark.parametrize("bug, same", [(ORDER[2], True), (ORDER[0], False)])
def test_a_checkpoint_says_whether_its_rows_are_those_of_the_board(visit, bug, same):
    case, _ = quiz.checkpoint(ORDER[:3])
    assert [*case.rows["reward"]] == [*load(ORDER[2]).rows["reward"]]
    page = visit(bug, {PROGRESS.name: after(3)})
    page.app.button(key="checkpoint").click()
    page.run()
    assert (unnamed.SAME_ROWS in page.text) == same
    assert (unnamed.OTHER_ROWS in page.text) == (not same)


def test_every_flag_has_a_sentence_for_yes_and_for_no():
    for name, texts in TEXTS.items():
        assert (name in FLAGS) == ({"yes", "no"} <= {*texts}), name
        assert "{}" in texts.get("said", "{}")
