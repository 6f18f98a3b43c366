"""Logs made by the engines, as a trainer would have written them."""

from dataclasses import replace

import numpy as np
import pandas as pd

import gradebook
from gradebook.core.settings import ESTIMATORS

NEEDED = {
    "partial_groups": (),
    "no_eos_outliers": ("eos",),
    "rejected_rows": ("length",),
    "double_normalization": ("steps",),
}


def made(bug="", estimator="grpo", steps=6, groups=4, seed=0, **changes):
    """A log of whole steps: groups of up to four rows, advantages in
    float32, and every column that tells a bug."""
    rng = np.random.default_rng(seed)
    settings = replace(ESTIMATORS[estimator], **changes)
    if bug == "no_eos_outliers":
        settings = replace(settings, mask_no_eos=True)
    engine = gradebook.bug(bug).engine if bug else gradebook.CORRECT
    if bug == "partial_groups":
        settings = replace(settings, group_size=4)
    frames = []
    for step in range(1, steps + 1):
        sizes = np.full(groups, 4)
        if bug == "partial_groups":
            sizes[1:] = rng.integers(1, 5, groups - 1)
        prompt = np.repeat(np.arange(groups), sizes)
        rows = len(prompt)
        frame = pd.DataFrame(
            {
                "step": step,
                "prompt": [f"prompt {p}" for p in prompt],
                "reward": rng.normal(size=rows).round(3),
                "response_length": rng.integers(2, 9, rows),
                "eos": True,
                "episode_steps": rng.integers(1, 9, rows),
            }
        )
        if bug == "rejected_rows":
            frame.loc[rng.random(rows) < 0.25, "response_length"] = 0
        if bug == "no_eos_outliers":
            frame["eos"] = rng.random(rows) > 0.25
        frames.append(frame)
    log = pd.concat(frames, ignore_index=True)
    wide = int(log["response_length"].max())
    mask = np.arange(wide) < log["response_length"].to_numpy()[:, None]
    batch = gradebook.Batch(
        prompt=log["prompt"].tolist(),
        reward=log["reward"].tolist(),
        mask=mask.tolist(),
        eos=log["eos"].tolist(),
        step=log["step"].tolist(),
        steps=log["episode_steps"].tolist(),
        settings=settings,
    )
    advantage = gradebook.run(engine, batch).advantage.numpy()
    log["advantage"] = advantage.astype("float32").astype("float64")
    return log
