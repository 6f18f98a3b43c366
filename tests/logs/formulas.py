"""Made logs of formulas that trainers and papers use, of faults, and of
formulas that nobody knows. Imports nothing from gradebook."""

import numpy as np
import pandas as pd

EPS = (1e-9, 1e-8, 1e-6, 1e-5, 1e-4)
REWARDS = {
    "0 or 1": lambda c, level: (c.random(len(level)) < 0.5).astype(float),
    "minus 1 or 1": lambda c, level: np.sign(c.random(len(level)) - 0.6),
    "quarters": lambda c, level: c.integers(0, 5, len(level)) / 4,
    "normal": lambda c, level: c.normal(size=len(level)) + level,
    "three decimals": lambda c, level: (c.normal(size=len(level)) + level).round(3),
    "0 to 10": lambda c, level: c.random(len(level)) * 10,
    "near 100": lambda c, level: 100 + c.normal(size=len(level)),
    "1 with a bonus": lambda c, level: (
        (c.random(len(level)) < 0.4) + 0.1 * c.random(len(level)).round(2)
    ),
}


SIZES = (2, 3, 4, 4, 5, 5, 6, 6, 8, 8, 16, 16)


def shape(chance, least=2):
    """4 to 60 steps of equal or unequal groups of 2 to 16 rows, with rewards
    of some kind. `group` is what trainers group by, `uid` what they log."""
    steps = int(chance.choice([4, 5, 6, 8, 12, 25, 60]))
    groups = int(chance.integers(2, 13 if steps < 12 else 4))
    largest = int(chance.choice([n for n in SIZES if n >= least]))
    sizes = np.full(steps * groups, largest)
    if largest > 2 and chance.random() < 0.4:
        sizes = chance.integers(2, largest + 1, steps * groups)
    group = np.repeat(np.arange(steps * groups), sizes)
    step = group // groups
    kind = str(chance.choice(sorted(REWARDS)))
    reward = REWARDS[kind](chance, chance.normal(size=steps * groups)[group])
    if kind != "0 or 1" or chance.random() < 0.5:
        reward[np.unique(group, return_index=True)[1]] += 0.25  # few flat groups
    frame = pd.DataFrame({"step": step, "uid": group, "reward": reward})
    frame["response_length"] = chance.integers(1, 90, len(frame))
    frame["group"] = group
    return frame


def arranged(frame, chance):
    """Rows as trainers leave them: a prompt drawn twice in a step, or rows of
    a step in any order, or as they are."""
    way = chance.random()
    equal = frame.groupby("group").size().nunique() == 1
    if way < 0.1 and equal and frame["group"].nunique() > 2 * frame["step"].nunique():
        place = frame["group"] - frame.groupby("step")["group"].transform("min")
        return frame.assign(uid=frame["group"] - (place == 1))
    if way < 0.2:
        frame = frame.assign(at=chance.random(len(frame)))
        return frame.sort_values(["step", "at"]).drop(columns="at").reset_index()
    return frame


class By:
    """Statistics of rows that share a number, at each row."""

    def __init__(self, of, x, weight=None):
        self.of, self.x = np.unique(of, return_inverse=True)[1], np.asarray(x)
        self.w = np.ones_like(self.x)
        if weight is not None:
            self.w = np.asarray(weight).astype(self.x.dtype)
        self.order = np.argsort(self.of, kind="stable")
        self.starts = np.searchsorted(self.of[self.order], np.arange(max(self.of) + 1))

    def sum(self, x):
        """In the numbers' own type, as trainers do."""
        return np.add.reduceat(np.asarray(x)[self.order], self.starts)[self.of]

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
        out = np.empty_like(self.x)
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
    """name -> (estimator, (frame, eps) -> advantages): computations that somebody
    uses on purpose."""

    def r(f):
        return f["reward"].to_numpy()

    def g(f):
        return By(f["group"], f["reward"])

    def s(f):
        return By(f["step"], f["reward"])

    def away(f):
        return r(f) - g(f).mean

    def apart(f):
        return r(f) - g(f).others

    def far(f):
        return r(f) - s(f).mean

    table = {
        "dr_grpo": ("dr_grpo", lambda f, e: away(f)),
        "rloo": ("rloo", lambda f, e: apart(f)),
        "opo": ("opo", lambda f, e: r(f) - opo(f)),
        "batch mean": ("batch_mean/none", lambda f, e: far(f)),
        "batch others": ("batch_others/none", lambda f, e: r(f) - s(f).others),
        "maxrl": ("maxrl", lambda f, e: away(f) / (g(f).mean + e)),
        "pass@k": ("grpo_passk", lambda f, e: g(f).each(best) / (g(f).std(1) + e)),
        "pass@k undivided": ("grpo_passk", lambda f, e: g(f).each(best)),
        "least deviation": ("grpo", lambda f, e: away(f) / np.maximum(g(f).std(1), e)),
    }
    divided = {  # by the group's deviation, and by the batch's
        "grpo": ("grpo", away, g),
        "leave one out over std": ("leave_one_out/group_std", apart, g),
        "batch zscore": ("batch_zscore", far, s),
        "batch mean, group std": ("batch_mean/group_std", far, g),
        "group mean, batch std": ("grpo_batch_std", away, s),
        "reward over std": ("none/group_std", r, g),
        "reward over batch std": ("none/batch_std", r, s),
        "opo over std": ("length_weighted_mean/group_std", lambda f: r(f) - opo(f), g),
    }
    for d in (0, 1):
        for name, (estimator, top, of) in divided.items():
            table[f"{name} {d}"] = (
                estimator,
                lambda f, e, d=d, top=top, of=of: top(f) / (of(f).std(d) + e),
            )
        table[f"grpo inside {d}"] = (
            "grpo",
            lambda f, e, d=d: away(f) / np.sqrt(g(f).std(d) ** 2 + e),
        )
        table[f"over the others' std {d}"] = (
            "leave_one_out/others_std",
            lambda f, e, d=d: apart(f) / others_std(f, d, e),
        )
        table[f"about the baseline {d}"] = (
            "batch_mean/group_std",
            lambda f, e, d=d: far(f) / (g(f).std(d, s(f).mean) + e),
        )
        for t, over in enumerate(("rows", "tokens")):
            table[f"grpo whitened by {over} {d}"] = (
                f"grpo, whitened by {over}",
                lambda f, e, d=d, t=t: again(f, away(f) / (g(f).std(1) + e), d, t),
            )
            table[f"reinforce++ baseline by {over} {d}"] = (
                ("group_mean/advantage_std", "reinforce_plus_plus_baseline")[t],
                lambda f, e, d=d, t=t: again(f, away(f), d, t),
            )
            table[f"reward whitened by {over} {d}"] = (
                ("batch_zscore", "reinforce_plus_plus")[t],
                lambda f, e, d=d, t=t: again(f, r(f), d, t),
            )
        table[f"leave one out whitened {d}"] = (
            "rloo, whitened by tokens",
            lambda f, e, d=d: again(f, apart(f), d, True),
        )
    return table


def opo(f):
    return By(f["group"], f["reward"], f["response_length"]).mean


def others_std(f, ddof, eps):
    def of(x):
        if len(x) - 1 <= ddof:
            return np.zeros(len(x))
        return np.array([np.delete(x, i).std(ddof=ddof) for i in range(len(x))])

    spread = By(f["group"], f["reward"]).each(of)
    return np.where(spread > 1e-8, spread + eps, 1.0)


def best(x):
    out = np.zeros(len(x))
    top, second = np.argsort(-x, kind="stable")[:2]
    out[top] = x[top] - x[second]
    return out


def outside():
    """name -> frame, chance -> advantages: what no trainer is known for, or
    what nobody can recompute."""

    def g(f):
        return By(f["group"], f["reward"])

    def grpo(f):
        return (f["reward"].to_numpy() - g(f).mean) / (g(f).std(1) + 1e-6)

    return {
        "median": lambda f, c: f["reward"] - g(f).each(lambda x: np.quantile(x, 0.45)),
        "min-max": lambda f, c: g(f).each(
            lambda x: (x - x.min()) / (np.ptp(x) + 1e-6) * 1.7
        ),
        "critic": lambda f, c: f["reward"] - c.normal(size=len(f)),
        "noise": lambda f, c: c.normal(size=len(f)),
        "noisy grpo": lambda f, c: grpo(f) + 0.05 * c.normal(size=len(f)),
        "clipped grpo": lambda f, c: np.clip(grpo(f), -0.6, 0.6),
        "softmax": lambda f, c: g(f).each(
            lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum() - 0.5 / len(x)
        ),
        "times length": lambda f, c: grpo(f) / np.sqrt(f["response_length"]),
        "moving baseline": lambda f, c: f["reward"] - 0.37 * (f["step"] + 1),
        "negative": lambda f, c: -grpo(f),
        "length penalty": lambda f, c: grpo(f) - f["response_length"] / 100,
    }


def faulty():
    """name -> frame, chance -> (frame, advantages): faults as they were
    reported, and whether structure proves them; some also say whether these
    rows do."""

    def of(f, group, divided=True, eps=1e-6):
        b = By(group, f["reward"])
        with np.errstate(all="ignore"):
            away = f["reward"].to_numpy() - b.mean
            return away / (np.nan_to_num(b.std(1)) + eps) if divided else away

    def equal(f):
        """Groups of one size, and that size."""
        size = int(f.groupby("group").size().min())
        kept = f.groupby("group").cumcount() < size
        return f[kept].reset_index(drop=True), size

    def fewer(f, chance):
        """Rows lost in most steps, never in the first."""
        later = f["step"] > f["step"].min()
        lost = (chance.random(len(f)) < 0.15) & later
        lost[chance.choice(np.flatnonzero(later))] = True
        return f[~lost].reset_index(drop=True)

    def place(f):
        at = f.groupby("step").cumcount().to_numpy()
        return at, f.groupby("step")["uid"].transform("size").to_numpy()

    def mixes(f, cell):
        """Groups are unequal, some cells hold one group alone while others mix
        several, and cells are not whole steps, which somebody may mean."""
        several = len(set(cell)) > f["step"].nunique()
        prompts = f.groupby(cell)["group"].transform("nunique")
        size = f.groupby("group")["group"].transform("size")
        alone = (prompts == 1) & (size == f.groupby(cell)["group"].transform("size"))
        mixed = (prompts > 1).any()
        return several and size.nunique() > 1 and alone.any() and mixed

    def strides(f, chance):
        f, size = equal(f)
        f = fewer(f, chance)
        at, count = place(f)
        cell = f["step"].to_numpy() * 1000 + at // size
        tail = at >= count // size * size
        a = np.where(tail, f["reward"] / 1e-6, of(f, cell))
        return f, a, tail.any() or mixes(f, cell)

    def fallback(f, chance):
        f, size = equal(f)
        full = f.groupby("step")["uid"].transform("size")
        f = fewer(f.assign(full=full), chance)
        whole = place(f)[1] < f["full"]
        group = np.where(whole, -1 - f["step"], f["group"])
        return f.drop(columns="full"), of(f, group)

    def filtered(f, chance):
        f, size = equal(f)
        f = f.assign(truncated=chance.random(len(f)) < 0.15)
        left = f.groupby("step")["truncated"].transform(lambda t: (~t).sum())
        nth = (~f["truncated"]).groupby(f["step"]).cumsum()
        f["truncated"] |= nth > left // size * size
        kept = f[~f["truncated"]]
        cell = kept["step"].to_numpy() * 1000 + place(kept)[0] // size
        a = np.zeros(len(f))
        a[kept.index] = of(kept, cell)
        return f, a, mixes(kept, cell)

    def parentheses(f, chance):
        f = f.assign(reward=f["reward"] + 0.3 * chance.normal(size=len(f)))
        b = By(f["group"], f["reward"])
        return f, f["reward"] - b.mean / (b.std(1) + 1e-6)

    def coarse(f, chance):
        import torch

        f = f.assign(reward=(f["reward"] + 3.3 * chance.random(len(f))).round(3))
        b = By(f["group"], f["reward"])
        x = torch.tensor(f["reward"].to_numpy())
        away = (x - torch.tensor(b.mean).bfloat16()).bfloat16()
        scale = torch.tensor(b.std(1) + 1e-6).bfloat16()
        a = (away / scale).double().numpy()
        # Proved if a row is ten times further off than bfloat16 advantages and the
        # rewards' three decimals explain.
        size = np.abs(a)
        rewards = 5e-4 * (2 + size) / b.std(1)
        explained = 2.0**-8 * size + 1e-5 * (1 + size) + rewards
        off = np.abs(a - (b.x - b.mean) / (b.std(1) + 1e-6))
        return f, a, (off > 10 * explained).any()

    def dust(f, chance):
        f = f.assign(reward=(f["reward"] + 0.1 * chance.random(len(f))).round(3))
        group, eps = f["group"].to_numpy(), chance.choice(EPS)
        flat = group % 3 == 0
        f.loc[flat, "reward"] = 100.1
        out = of(f, group, True, eps)
        unit = float(np.spacing(np.float32(100.1)))
        n = By(group, f["reward"]).n
        lost = unit / (unit * np.sqrt(n / (n - 1)) + eps)
        return f, np.where(flat, lost, out)

    def one_pass(f, chance):
        first = ~f["group"].duplicated().to_numpy()
        # Quarters below 1, so that float32 keeps the digits of other groups.
        quarters = (f["reward"] * 4).round() % 4 / 4
        odd = (3 + 2 * chance.random(f["group"].max() + 1)).round(2)[f["group"]]
        f = f.assign(reward=np.where(f["group"] % 2 == 0, odd + first, quarters))
        b = By(f["group"], f["reward"].astype("float32"))
        x, k = b.x, (b.n - 1).astype("float32")

        def others(y):
            """The sum of each row's siblings in float32, in their order."""
            out = np.empty_like(y)
            for row, of in enumerate(b.of):
                mates = np.flatnonzero(b.of == of)
                out[row] = np.add.accumulate(y[mates[mates != row]])[-1]
            return out

        mean, square = others(x) / k, others(x * x) / k
        spread = np.sqrt(np.maximum((square - mean * mean) * k / (k - 1), 0))
        away = f["reward"].to_numpy() - By(f["group"], f["reward"]).others
        lost = f["group"][first & (spread > 0) & (f["group"] % 2 == 0)]
        a = np.where(spread > 0, away / (spread + 1e-6), away)
        return (f, a, True) if len(lost) > 1 else one_pass(shape(chance, 4), chance)

    def masked(f, chance):
        f = f.assign(truncated=chance.random(len(f)) < 0.2)
        return f, np.where(f["truncated"], 0, of(f, f["group"]))

    def rejected(f, chance):
        kept = chance.random(len(f)) > 0.2
        f = f.assign(response_length=f["response_length"] * kept)
        return f, np.where(kept, of(f, f["group"]), 0)

    def unscored(f, chance):
        f = f.assign(scored=chance.random(len(f)) > 0.2)
        f.loc[~f["scored"], "reward"] = 0.0
        return f, of(f, f["group"])

    def turns(f, chance):
        f = f.assign(trajectory_id=np.arange(len(f)))
        f = f.loc[f.index.repeat(chance.integers(1, 4, len(f)))].reset_index(drop=True)
        return f, of(f, f["group"])

    def texts(f, chance):
        f = f.assign(prompt_text=[f"question {u // 2}" for u in f["uid"]])
        both = f["step"].to_numpy() * 1000 + f["uid"].to_numpy() // 2
        return f, of(f, both)

    def whitened(f, about, of):
        """Advantages less `about`, over their root mean square by token."""
        a, tokens = about
        total = By(of, tokens * a * a).sum(tokens * a * a)
        return a / np.sqrt(total / (By(of, tokens).sum(tokens) - 1) + 1e-8)

    def padded(f, chance):
        a, tokens = of(f, f["group"]), f["response_length"].to_numpy()
        step = By(f["step"], a * tokens)
        wide = f.groupby("step")["response_length"].transform("max").to_numpy()
        mean = step.sum(step.x) / (step.n * wide)
        return f, whitened(f, (a - mean, tokens), f["step"])

    def sharded(f, chance):
        f = f.assign(rank=np.arange(len(f)) % 2, rollout_id=np.arange(len(f)))
        a, tokens = of(f, f["group"]), f["response_length"].to_numpy()
        shard = f["step"] * 2 + f["rank"]
        return f, whitened(f, (a - By(shard, a, tokens).mean, tokens), shard)

    def floor(f, chance):
        f = f.assign(reward=chance.integers(0, 9, len(f)) / 4096)
        b = By(f["group"], f["reward"])
        spread = np.sqrt(np.maximum(b.std(1) ** 2, 1e-6))
        return f, (f["reward"].to_numpy() - b.mean) / (spread + 1e-6)

    def twice(f, chance):
        f = f.assign(num_turns=chance.integers(1, 12, len(f)))
        b = By(f["step"], of(f, f["group"]), f["num_turns"])
        return f, (b.x - b.mean) / (b.std(0) + 1e-9)

    return {
        "partial_groups": (True, strides),
        "whole_batch": (True, fallback),
        "filtered_first": (True, filtered),
        "missing_parentheses": (True, parentheses),
        "bf16_rewards": (True, coarse),
        "float32_dust": (True, dust),
        "one_pass_variance": (True, one_pass),
        "no_eos_outliers": (False, masked),
        "rejected_rows": (False, rejected),
        "unscored_rows": (False, unscored),
        "fan_out": (False, turns),
        "prompt_text": (False, texts),
        "padded_mean": (False, padded),
        "sharded_whitening": (False, sharded),
        "variance_floor": (False, floor),
        "double_normalization": (False, twice),
        "swapped_scale": (False, lambda f, c: (f, of(f, f["group"], False))),
        "uid_per_rollout": (False, lambda f, c: (f, f["reward"].to_numpy())),
        "whole_batch of all steps": (False, lambda f, c: (f, of(f, f["step"]))),
    }


ROUNDINGS = ("none", "none", "float32", "float32", "2", "3", "4", "5", "6")
TYPES = ("float16", "bfloat16")


def rounded(a, how):
    """The advantages as a log writes them."""
    a = np.asarray(a, dtype=float)
    if how in TYPES:
        import torch

        return torch.tensor(a).to(getattr(torch, how)).double().numpy()
    if how == "float32":
        return a.astype("float32").astype(float)
    return a.round(int(how)) if how.isdigit() else a


def copied(frame, chance):
    """The last step filled with copies of its first row."""
    first = frame[frame["step"] == frame["step"].max()].iloc[:1]
    return pd.concat([frame, *[first] * int(chance.integers(1, 4))], ignore_index=True)


IDLE = {
    "finished": lambda f, c: True,
    "rank": lambda f, c: np.arange(len(f)) % 4,
    "completed": lambda f, c: c.random(len(f)) < 0.5,
    "accepted": lambda f, c: c.random(len(f)) < 0.8,
    "clipped": lambda f, c: c.random(len(f)) < 0.1,
    "trajectory_id": lambda f, c: np.arange(len(f)),
    "num_turns": lambda f, c: c.integers(1, 9, len(f)),
    "task_id": lambda f, c: c.integers(0, 3, len(f)),
    "score": lambda f, c: c.random(len(f)),
    "entropy": lambda f, c: c.random(len(f)),
}
"""Columns whose names say more than they mean."""


def dressed(frame, chance, uid=None):
    """Other names, other ids and idle columns."""
    uid = uid or str(chance.choice(["uid", "prompt_id", "group_id"]))
    frame = frame.drop(columns=["group", "index"], errors="ignore")
    if chance.random() < 0.2:
        frame["uid"] = "prompt " + frame["uid"].astype(str)
    frame = frame.rename(columns={"uid": uid})
    for name, values in IDLE.items():
        if chance.random() < 0.08:
            frame[name] = values(frame, chance)
    if uid == "uid" and chance.random() < 0.05:
        frame["group"] = np.arange(len(frame)) // 5
    return frame


def innocent(seed):
    """(name, estimator, advantages by estimator, frame) of a computation
    inside the space. `others` are what other estimators would give, each with
    every ddof and eps."""
    chance = np.random.default_rng(seed)
    formulas = inside()
    name = str(chance.choice(sorted(formulas)))
    estimator, function = formulas[name]
    frame = arranged(shape(chance), chance)
    how = str(chance.choice(ROUNDINGS))
    eps = chance.choice(EPS)
    single = frame
    if how == "float32" and frame["reward"].nunique() > 6:
        flat = frame.groupby("group")["reward"].transform("nunique") == 1
        frame.loc[flat, "reward"] = 1.0  # a flat group is exact in float32
        single = frame.assign(reward=frame["reward"].astype("float32"))
    with np.errstate(all="ignore"):
        a = np.asarray(function(single, eps), dtype=float)
    if chance.random() < 0.15 and np.abs(a).max() < 1000:
        how = str(chance.choice(TYPES))
    frame["advantage"] = rounded(a, how)
    if chance.random() < 0.05:
        frame = copied(frame, chance)
    return f"{name}, {how}", estimator, dressed(frame, chance)


def misdeclared(seed):
    """(what was declared, name, frame) of a computation inside the space that
    differs from what was declared, with any ddof and eps, on some row beyond
    its rounding; None if chance drew one that does not."""
    name, estimator, frame = innocent(seed)
    chance = np.random.default_rng([seed, 1])
    declared = str(chance.choice(["grpo", "dr_grpo", "rloo", "batch_zscore", "opo"]))
    uid = next(n for n in ("uid", "prompt_id", "group_id") if n in frame)
    plain = frame.assign(group=pd.factorize(frame[uid])[0])
    logged = frame["advantage"].to_numpy()
    off = 1e-2 * (1 + np.abs(logged)) + 2.0**-6 * np.abs(logged)
    for own, function in inside().values():
        if own == declared:
            for eps in (0.0, 1e-9, 1e-6, 1e-4, 1e-3):
                with np.errstate(all="ignore"):
                    a = np.asarray(function(plain, eps), dtype=float)
                if not (np.abs(a - logged) > off).any():
                    return None
    return None if declared == estimator else (declared, name, frame)


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
    with np.errstate(all="ignore"):
        frame, a, *shown = function(shape(chance, least=4), chance)
    frame = frame.assign(advantage=np.asarray(a, dtype=float))
    return name.split(" ")[0], proved and all(shown), frame.drop(columns="group")


FUNCTIONS = ("acc_reward", "format_reward", "style_reward")
WEIGHTS = ((1, 1), (1, 0.5), (0.7, 0.3), (1, 2), (1, 0.2), (1, 1, 1), (1, 0.5, 0.25))


def written(frame, a, chance, least=0):
    """The frame with its advantages as a log writes them, and the rounding; `least`
    decimals if it is rounded to decimals."""
    how = str(chance.choice(ROUNDINGS))
    if how.isdigit():
        how = str(max(int(how), least))
    if chance.random() < 0.1 and np.abs(a).max() < 1000 and not least:
        how = str(chance.choice(TYPES))
    return frame.assign(advantage=rounded(a, how)), how


def without_some(frame, chance, *names):
    """Half of the time without these columns."""
    return frame.drop(columns=[*names]) if chance.random() < 0.5 else frame


def usual(f, reward, name, eps):
    """The advantages of a reward under one of the computations used most."""
    b, s = By(f["group"], reward), By(f["step"], reward)
    away = np.asarray(reward) - b.mean
    return {
        "dr_grpo": lambda: away,
        "rloo": lambda: np.asarray(reward) - b.others,
        "grpo": lambda: away / (b.std(1) + eps),
        "grpo_batch_std": lambda: away / (s.std(1) + eps),
        "batch_zscore": lambda: (np.asarray(reward) - s.mean) / (s.std(1) + eps),
    }[name]()


USUAL = ("dr_grpo", "rloo", "grpo", "grpo_batch_std")


def parts(seed):
    """(what it is, estimator, weights, frame) of rewards of several functions, summed
    and then normalized, or normalized each (GDPO). Groups have three rows or more:
    pairs tell no weights."""
    chance = np.random.default_rng([seed, 10])
    f = shape(chance, 4)
    f = f[f.groupby("group")["group"].transform("size") > 2].reset_index(drop=True)
    weights = WEIGHTS[chance.integers(len(WEIGHTS))]
    names = FUNCTIONS[: len(weights)]
    f[names[0]] = f.pop("reward")
    for name in names[1:]:
        kind = str(chance.choice(["quarters", "normal", "three decimals"]))
        f[name] = REWARDS[kind](chance, np.zeros(len(f)))
    eps = chance.choice([1e-4, 1e-6, 1e-8])
    if chance.random() < 0.5:
        name = str(chance.choice(USUAL))
        a = usual(f, f[[*names]].to_numpy() @ np.array(weights, float), name, eps)
        f = without_some(f, chance, "response_length")
    else:
        each = [By(f["group"], f[n]) for n in names]
        total = sum(
            w * (b.x - b.mean) / (b.std(1) + eps) for w, b in zip(weights, each)
        )
        name = str(chance.choice(["not again", "over rows", "over tokens", "over std"]))
        a = {
            "not again": lambda: total,
            "over rows": lambda: again(f, total),
            "over tokens": lambda: again(f, total, by_token=True),
            "over std": lambda: usual(f, total, "batch_zscore", eps),
        }[name]()
    f, how = written(f, a, chance, least=4)
    estimator = name if name in USUAL else "gdpo"
    return f"{name} of {len(weights)}, {how}", estimator, weights, dressed(f, chance)


def beside():
    """kind -> (frame, chance) -> (frame, advantages): numbers that a plain computation
    gives but for one thing, which the log shows. None if it made no difference."""

    def reward_with(f, chance, term, names=USUAL[:3]):
        name = str(chance.choice(names))
        return usual(f, f["reward"].to_numpy() + term, name, chance.choice(EPS))

    def clamp(f, chance):
        a = usual(f, f["reward"], str(chance.choice(USUAL)), 1e-6)
        bound = np.quantile(np.abs(a), chance.uniform(0.6, 0.9))
        return f, np.clip(a, -bound, bound)

    def floor(f, chance):
        level = np.exp(chance.normal(size=f["group"].max() + 1))[f["group"]]
        f = f.assign(reward=level * f["reward"])
        b = By(f["group"], f["reward"])
        spread = b.std(1)
        least = np.quantile(spread, chance.uniform(0.3, 0.6))
        return f, (b.x - b.mean) / np.maximum(spread, least)

    def kl(f, chance):
        step = f["step"].to_numpy()
        size = chance.choice([0.02, 0.05, 0.2]) * step / max(step.max(), 1)
        term = -size * np.abs(1 + 0.5 * chance.normal(size=len(f)))
        return f, reward_with(f, chance, term)

    def length(f, chance):
        each = chance.choice([1e-2, 2e-3, 1 / 512])
        return f, reward_with(f, chance, -each * f["response_length"].to_numpy())

    def pieces(f, chance):
        size = int(chance.choice([2, 4]))
        f = f[f.groupby("group")["group"].transform("size") >= 2 * size]
        f = f[f.groupby("group").cumcount() < 2 * size].reset_index(drop=True)
        if f["group"].nunique() < 4:
            return None
        cell = f["group"] * 100 + f.groupby("group").cumcount() // size
        return f, usual(f.assign(group=cell), f["reward"], "grpo", 1e-6)

    def one_row(f, chance):
        f = f.assign(trajectory_id=np.arange(len(f)))
        turns = chance.integers(1, 4, len(f))
        a = usual(f, f["reward"], str(chance.choice(USUAL[:3])), 1e-6)
        f = f.loc[f.index.repeat(turns)]
        last = ~f["trajectory_id"].duplicated(keep="last").to_numpy()
        return f.reset_index(drop=True), np.where(last, a[f.index], 0.0)

    def neighbours(f, chance):
        a = usual(f, f["reward"], str(chance.choice(USUAL[:3])), 1e-6)
        half = f.groupby("group").cumcount() % 2
        f = f.assign(step=2 * f["step"] + half, advantage=a)
        f = f.sort_values(["step", "uid"], kind="stable").reset_index(drop=True)
        return f, f.pop("advantage").to_numpy()

    return {
        "clamp": clamp,
        "floor": floor,
        "kl": kl,
        "length": length,
        "pieces": pieces,
        "one row": one_row,
        "neighbours": neighbours,
    }


def shown(seed, kind):
    """(what it is, frame) of a log that shows `kind`; None if chance drew one that
    shows nothing."""
    chance = np.random.default_rng([seed, 20, [*beside()].index(kind)])
    f = shape(chance, 4)
    if kind == "kl":
        f = f[f["step"] < 60]
    made = beside()[kind](f, chance)
    if made is None:
        return None
    f, a = made
    f, how = written(f, a, chance, least=4)
    if kind != "length":
        f = without_some(f, chance, "response_length")
    return f"{kind}, {how}", dressed(f, chance)


def turned(seed):
    """(what it is, frame): MaxRL over rewards below 0, or a sign that slipped."""
    chance = np.random.default_rng([seed, 30])
    f = shape(chance)
    f["reward"] -= f["reward"].max() + 0.1 + chance.random()
    b = By(f["group"], f["reward"])
    name = str(chance.choice(["maxrl", "slipped sign"]))
    a = (b.x - b.mean) / (b.mean + 1e-6)
    if name == "slipped sign":
        a = -usual(f, f["reward"], str(chance.choice(USUAL)), 1e-6)
    f, how = written(f, a, chance, least=3)
    return f"{name}, {how}", dressed(f, chance)


def masked(seed):
    """(what it is, frame): rows that the loss masks vote, and keep an advantage."""
    chance = np.random.default_rng([seed, 40])
    f = shape(chance, 4)
    a = usual(f, f["reward"], str(chance.choice(USUAL[:3])), 1e-6)
    gone = chance.random(len(f)) < 0.25
    f["response_length"] = f["response_length"] * ~gone
    f, how = written(f, a, chance, least=3)
    return f"masked, {how}", dressed(f, chance)


def copies(seed):
    """(estimator, what it is, frame): copies of its first row fill the last step, and
    have no vote."""
    chance = np.random.default_rng([seed, 50])
    f = shape(chance, 3)
    name = str(chance.choice(USUAL[:3]))
    f, how = written(f, usual(f, f["reward"], name, 1e-6), chance, least=3)
    return name, f"copies, {how}", dressed(copied(f, chance), chance)
