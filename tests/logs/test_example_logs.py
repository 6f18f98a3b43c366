"""The example logs are what scenarios/logs/README.md says."""

import example_logs as made
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

READ = {
    "trl.parquet": (pd.read_parquet, made.real),
    "lost-rollouts.csv": (pd.read_csv, made.lost_rollouts),
    "rejected-answers.jsonl": (
        lambda path: pd.read_json(path, lines=True),
        made.rejected_answers,
    ),
}


@pytest.mark.parametrize("name", READ)
def test_an_example_log_is_made_from_the_real_one(name):
    read, make = READ[name]
    shipped, wanted = read(made.SHIPPED / name), make()
    assert_frame_equal(
        shipped.fillna(""), wanted.fillna(""), check_dtype=False, atol=1e-8
    )
