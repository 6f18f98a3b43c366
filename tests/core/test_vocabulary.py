"""The vocabulary: one record for each baseline and each scale, and its function."""

import pytest
import torch

from gradebook.analysis.laws import OF_REWARDS
from gradebook.core.batch import Batch
from gradebook.core.settings import KINDS, Settings
from gradebook.core.vocabulary import BASELINES, NAMED, SCALES, Baseline, named
from gradebook.engine import advantages
from gradebook.engine.pipeline import CORRECT, run

RECORDS = [*BASELINES.values(), *SCALES.values()]
LAWS = {law.__name__ for law in OF_REWARDS}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.function)
def test_a_record_names_its_function_settings_and_laws(record):
    assert callable(getattr(advantages, record.function))
    assert KINDS.keys() >= {*record.reads}
    assert {*record.breaks} <= LAWS
    assert record.formula


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("scale", SCALES)
def test_every_combination_runs_and_has_a_name(baseline, scale):
    settings = Settings(baseline=baseline, scale=scale)
    batch = Batch(prompt=[0, 0, 1, 1], reward=[1.0, 2.0, 4.0, 8.0], settings=settings)
    assert bool(torch.isfinite(run(CORRECT, batch).advantage).all())
    assert named(baseline, scale).title


SHIFTED = {"lone_row": "raw", "spread_about": "baseline", "ddof": 0, "eps": 0.5}
SHIFTED |= {"eps_at": "inside"}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.function)
def test_a_function_reads_the_settings_of_its_record_alone(record):
    """Another value of a setting that the record does not name changes nothing."""
    kind = "baseline" if isinstance(record, Baseline) else "scale"
    plain = Settings(**{"baseline": "leave_one_out", kind: record.name})
    columns = {"prompt": [0, 0, 0, 1, 2, 2], "reward": [1.0, 2, 4, 8, 0, 3]}
    before = run(CORRECT, Batch(**columns, settings=plain))
    for name, value in SHIFTED.items():
        if name in record.reads or name == "lone_row":
            continue
        changed = Settings(**{**plain, name: value})
        after = run(CORRECT, Batch(**columns, settings=changed))
        assert getattr(after, kind).tolist() == getattr(before, kind).tolist(), name


def test_a_combination_without_a_name_is_called_by_its_parts():
    assert named("batch_mean", "group_std")[:2] == (
        "batch_mean/group_std",
        "the reward minus the batch's mean over the group's deviation",
    )
    assert named("group_mean", "group_std", "rows")[:2] == (
        "grpo, whitened by rows",
        "GRPO, then whitened over rows",
    )
    assert all(b in BASELINES and s in SCALES for b, s, _ in NAMED)
