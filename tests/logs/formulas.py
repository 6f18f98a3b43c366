"""Made logs of formulas that trainers and papers use, of faults, and of
formulas that nobody knows. Imports nothing from gradebook."""

import numpy as np
import pandas as pd

EPS = (1e-8, 1e-6, 1e-4)


def shape(chance):
    """Steps of groups with rewards of some kind, and a flag or two."""
    steps, groups = int(chance.integers(4, 9)), int(chance.integers(4, 9))
    size = int(chance.choice([4, 5, 6, 8]))
    rows = steps * groups * size
    step = np.repeat(np.arange(steps), groups * size)
    group = np.repeat(np.arange(steps * groups), size)
    level = chance.normal(size=steps * groups)[group]
    reward = (
        (chance.random(rows) < 0.5).astype(float),
        chance.normal(size=rows) + level,
        chance.integers(0, 5, rows) / 4,
        chance.random(rows) * 10,
    )[chance.integers(4)]
    reward[::size] += 1e-3  # no group and no step is flat
    frame = pd.DataFrame({"step": step, "uid": group, "reward": reward})
    frame["response_length"] = chance.integers(3, 90, rows)
    return frame


class By:
    """Statistics of rows that share a number, at each row."""

    def __init__(self, of, x, weight=None):
        self.of, self.x = np.unique(of, return_inverse=True)[1], np.asarray(x, float)
        self.w = np.ones(len(self.x)) if weight is None else np.asarray(weight, float)

    def sum(self, x):
        return np.bincount(self.of, x)[self.of]

    @property
    def n(self):
        return self.sum(self.w)

    @property
    def mean(self):
        return self.sum(self.w * self.x) / self.n

    def std(self, ddof, about=None):
        away = self.x - (self.mean if about is None else about)
        return np.sqrt(self.sum(self.w * away**2) / (self.n - ddof))

    @property
    def others(self):
        return (self.sum(self.x) - self.x) / (self.n - 1)

    def each(self, function):
        out = np.empty(len(self.x))
        for one in range(self.of.max() + 1):
            at = self.of == one
            out[at] = function(self.x[at])
        return out


def again(frame, a, ddof=1, by_token=False, root=True):
    weight = frame["response_length"] if by_token else None
    b = By(frame["step"], a, weight)
    return (a - b.mean) / (
        np.sqrt(b.std(ddof) ** 2 + 1e-8) if root else b.std(ddof) + 1e-8
    )


def inside():
    """name -> (frame, eps) -> advantages: computations that somebody uses on
    purpose, and the estimator's name."""
    found = {}

    def add(name, estimator, function):
        found[name] = (estimator, function)

    def g(f):
        return By(f["uid"], f["reward"])

    def s(f):
        return By(f["step"], f["reward"])

    def away(f):
        return f["reward"].to_numpy() - g(f).mean

    def apart(f):
        return f["reward"].to_numpy() - g(f).others

    for ddof in (0, 1):
        add(f"grpo {ddof}", "grpo", lambda f, e, d=ddof: away(f) / (g(f).std(d) + e))
        add(
            f"grpo inside {ddof}",
            "grpo",
            lambda f, e, d=ddof: away(f) / np.sqrt(g(f).std(d) ** 2 + e),
        )
        add(
            f"leave one out over std {ddof}",
            "leave_one_out/group_std",
            lambda f, e, d=ddof: apart(f) / (g(f).std(d) + e),
        )
        add(
            f"batch zscore {ddof}",
            "batch_zscore",
            lambda f, e, d=ddof: (f["reward"] - s(f).mean) / (s(f).std(d) + e),
        )
        add(
            f"batch mean, group std {ddof}",
            "batch_mean/group_std",
            lambda f, e, d=ddof: (f["reward"] - s(f).mean) / (g(f).std(d) + e),
        )
        add(
            f"group mean, batch std {ddof}",
            "grpo_batch_std",
            lambda f, e, d=ddof: away(f) / (s(f).std(d) + e),
        )
        add(
            f"reward over std {ddof}",
            "none/group_std",
            lambda f, e, d=ddof: f["reward"] / (g(f).std(d) + e),
        )
        add(
            f"reward over batch std {ddof}",
            "none/batch_std",
            lambda f, e, d=ddof: f["reward"] / (s(f).std(d) + e),
        )
        add(
            f"opo over std {ddof}",
            "length_weighted_mean/group_std",
            lambda f, e, d=ddof: (f["reward"] - opo(f)) / (g(f).std(d) + e),
        )
        add(
            f"over the others' std {ddof}",
            "leave_one_out/others_std",
            lambda f, e, d=ddof: apart(f) / (others_std(f, d) + e),
        )
        add(
            f"about the baseline {ddof}",
            "batch_mean/group_std",
            lambda f, e, d=ddof: (
                (f["reward"] - s(f).mean) / (g(f).std(d, s(f).mean) + e)
            ),
        )
        for by_token in (False, True):
            over = "tokens" if by_token else "rows"
            add(
                f"grpo whitened by {over} {ddof}",
                f"grpo, whitened by {over}",
                lambda f, e, d=ddof, t=by_token: again(
                    f, away(f) / (g(f).std(1) + e), d, t
                ),
            )
            add(
                f"reinforce++ baseline by {over} {ddof}",
                "reinforce_plus_plus_baseline"
                if by_token
                else "group_mean/advantage_std",
                lambda f, e, d=ddof, t=by_token: again(f, away(f), d, t),
            )
            add(
                f"reward whitened by {over} {ddof}",
                "reinforce_plus_plus" if by_token else "batch_zscore",
                lambda f, e, d=ddof, t=by_token: again(f, f["reward"].to_numpy(), d, t),
            )
        add(
            f"leave one out whitened {ddof}",
            "rloo, whitened by tokens",
            lambda f, e, d=ddof: again(f, apart(f), d, True),
        )
    add("dr_grpo", "dr_grpo", lambda f, e: away(f))
    add("rloo", "rloo", lambda f, e: apart(f))
    add("opo", "opo", lambda f, e: f["reward"] - opo(f))
    add("batch mean", "batch_mean/none", lambda f, e: f["reward"] - s(f).mean)
    add("batch others", "batch_others/none", lambda f, e: f["reward"] - s(f).others)
    add("maxrl", "maxrl", lambda f, e: away(f) / (g(f).mean + e))
    add("pass@k", "grpo_passk", lambda f, e: g(f).each(best) / (g(f).std(1) + e))
    add("pass@k undivided", "grpo_passk", lambda f, e: g(f).each(best))
    add(
        "least deviation",
        "grpo",
        lambda f, e: away(f) / np.maximum(g(f).std(1), e),
    )
    return found


def opo(f):
    return By(f["uid"], f["reward"], f["response_length"]).mean


def others_std(f, ddof):
    def of(x):
        return np.array([np.delete(x, i).std(ddof=ddof) for i in range(len(x))])

    spread = By(f["uid"], f["reward"]).each(of)
    return np.where(spread > 1e-8, spread, 1.0)


def best(x):
    out = np.zeros(len(x))
    top, second = np.argsort(-x, kind="stable")[:2]
    out[top] = x[top] - x[second]
    return out


def outside():
    """name -> frame, chance -> advantages: what no trainer is known for, or
    what nobody can recompute."""

    def g(f):
        return By(f["uid"], f["reward"])

    def ranks(x):
        return np.argsort(np.argsort(x, kind="stable")) / (len(x) - 1) - 0.5

    def grpo(f):
        return (f["reward"].to_numpy() - g(f).mean) / (g(f).std(1) + 1e-6)

    return {
        "median": lambda f, c: f["reward"] - g(f).each(lambda x: np.quantile(x, 0.45)),
        "quantile": lambda f, c: f["reward"] - g(f).each(lambda x: np.quantile(x, 0.7)),
        "median and mad": lambda f, c: (
            (f["reward"] - g(f).each(lambda x: np.quantile(x, 0.4)))
            / (g(f).each(lambda x: np.abs(x - x.mean()).mean()) + 1e-3)
        ),
        "min-max": lambda f, c: g(f).each(
            lambda x: (x - x.min()) / (np.ptp(x) + 1e-6) * 1.7
        ),
        "ranks": lambda f, c: g(f).each(ranks),
        "critic": lambda f, c: f["reward"] - c.normal(size=len(f)),
        "noise": lambda f, c: c.normal(size=len(f)),
        "noisy grpo": lambda f, c: grpo(f) + 0.05 * c.normal(size=len(f)),
        "clipped grpo": lambda f, c: np.clip(grpo(f), -0.6, 0.6),
        "tanh": lambda f, c: np.tanh(grpo(f)),
        "squared": lambda f, c: np.sign(grpo(f)) * grpo(f) ** 2,
        "softmax": lambda f, c: g(f).each(
            lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum() - 0.5 / len(x)
        ),
        "times length": lambda f, c: grpo(f) / np.sqrt(f["response_length"]),
        "entropy bonus": lambda f, c: grpo(f) + 0.1 * c.random(len(f)),
        "moving baseline": lambda f, c: f["reward"] - 0.37 * (f["step"] + 1),
        "twice less one": lambda f, c: 2.3 * f["reward"] - 1.1,
        "asymmetric": lambda f, c: np.where(grpo(f) > 0, 1.5, 0.7) * grpo(f),
        "negative": lambda f, c: -grpo(f),
        "length penalty": lambda f, c: grpo(f) - f["response_length"] / 100,
        "gae": lambda f, c: (
            0.95 * f["reward"] + 0.05 * c.normal(size=len(f)) - g(f).mean
        ),
    }


def faulty():
    """name -> frame, chance -> (frame, advantages): faults as they were
    reported, and whether structure proves them."""

    def drop(f, chance):
        keep = chance.random(len(f)) > 0.15
        keep[f["step"].to_numpy() == 0] = True
        keep[: len(f) // 3] = keep[: len(f) // 3] & (np.arange(len(f) // 3) % 7 != 6)
        return f[keep].reset_index(drop=True)

    def of(f, group, divided=True, eps=1e-6):
        b = By(group, f["reward"])
        away = f["reward"].to_numpy() - b.mean
        return away / (b.std(1) + eps) if divided else away

    def strides(f, chance):
        size = int(f.groupby("uid").size().max())
        f = drop(f, chance)
        place = f.groupby("step").cumcount().to_numpy()
        count = f.groupby("step")["uid"].transform("size").to_numpy()
        stride = f["step"].to_numpy() * 1000 + place // size
        a = of(f, stride)
        tail = place >= count // size * size
        return f, np.where(tail, f["reward"] / 1e-6, a)

    def parentheses(f, chance):
        f = f.assign(reward=f["reward"] + 0.3 * chance.normal(size=len(f)))
        b = By(f["uid"], f["reward"])
        return f, f["reward"] - b.mean / (b.std(1) + 1e-6)

    def coarse(f, chance):
        import torch

        f = f.assign(reward=(f["reward"] + 3.3 * chance.random(len(f))).round(3))
        b = By(f["uid"], f["reward"])
        x = torch.tensor(f["reward"].to_numpy())
        away = (x - torch.tensor(b.mean).bfloat16()).bfloat16()
        scale = torch.tensor(b.std(1) + 1e-6).bfloat16()
        return f, (away / scale).double().numpy()

    def dust(f, chance):
        f = f.assign(reward=(f["reward"] + 0.1 * chance.random(len(f))).round(3))
        group = f["uid"].to_numpy()
        flat = group % 3 == 0
        f.loc[flat, "reward"] = 100.1
        x = f["reward"].to_numpy().astype("float32")
        out = of(f, group)
        for one in np.unique(group[flat]):
            at = group == one
            off = np.float32(100.1) - np.float32(np.spacing(np.float32(100.1)))
            away = float(x[at][0] - off)
            spread = away * np.sqrt(at.sum() / (at.sum() - 1))
            out[at] = away / (spread + 1e-6)
        return f, out

    def masked(f, chance):
        f = f.assign(truncated=chance.random(len(f)) < 0.2)
        return f, np.where(f["truncated"], 0, of(f, f["uid"]))

    def rejected(f, chance):
        f = f.assign(
            response_length=f["response_length"] * (chance.random(len(f)) > 0.2)
        )
        return f, np.where(f["response_length"] == 0, 0, of(f, f["uid"]))

    def texts(f, chance):
        f = f.assign(prompt_text=[f"question {u // 2}" for u in f["uid"]])
        both = f["step"].to_numpy() * 1000 + f["uid"].to_numpy() // 2
        return f, of(f, both)

    return {
        "partial_groups": (True, strides),
        "missing_parentheses": (True, parentheses),
        "bf16_rewards": (True, coarse),
        "float32_dust": (True, dust),
        "no_eos_outliers": (False, masked),
        "rejected_rows": (False, rejected),
        "prompt_text": (False, texts),
        "swapped_scale": (False, lambda f, c: (f, of(f, f["uid"], False))),
        "uid_per_rollout": (False, lambda f, c: (f, f["reward"].to_numpy())),
        "whole_batch": (False, lambda f, c: (f, of(f, f["step"]))),
    }


ROUNDINGS = ("none", "none", "float32", "4 decimals", "float16")


def rounded(a, how):
    """The advantages as a log writes them."""
    a = np.asarray(a, dtype=float)
    if how == "float32":
        return a.astype("float32").astype(float)
    if how == "float16":
        return a.astype("float16").astype(float)
    return a.round(4) if how == "4 decimals" else a


def dressed(frame, chance):
    """Other names, other ids and idle columns."""
    frame = frame.rename(columns={"uid": chance.choice(["uid", "prompt_id", "group"])})
    if chance.random() < 0.3:
        frame["finished"] = True
    if chance.random() < 0.3:
        frame["rank"] = np.arange(len(frame)) % 4
    return frame


def innocent(seed):
    """(name, estimator, frame) of a computation inside the space."""
    chance = np.random.default_rng(seed)
    formulas = inside()
    name = str(chance.choice(sorted(formulas)))
    estimator, function = formulas[name]
    frame = shape(chance)
    a = function(frame, chance.choice(EPS))
    how = str(chance.choice(ROUNDINGS))
    frame["advantage"] = rounded(a, how)
    return f"{name}, {how}", estimator, dressed(frame, chance)


def unknown(seed):
    """(name, frame) of a formula outside the space."""
    chance = np.random.default_rng(seed)
    formulas = outside()
    name = str(chance.choice(sorted(formulas)))
    frame = shape(chance)
    frame["advantage"] = np.asarray(formulas[name](frame, chance), dtype=float)
    return name, dressed(frame, chance)


def fault(seed, name=None):
    """(bug, structure proves it, frame)."""
    chance = np.random.default_rng(seed)
    faults = faulty()
    name = name or str(chance.choice(sorted(faults)))
    proved, function = faults[name]
    frame, a = function(shape(chance), chance)
    return name, proved, frame.assign(advantage=np.asarray(a, dtype=float))
