"""Each trainer's functions under their settings, what its documentation declares,
and the releases that have them; no results. What cannot be cut is not measured."""

from functools import partial

from gradebook.measure import calls
from gradebook.measure.cut import Function

GRPO, RLOO, DR_GRPO = ({"estimator": name} for name in ("grpo", "rloo", "dr_grpo"))
GROUP = {"baseline": "group_mean", "scale": "group_std", "eps": 1e-4}
BATCH, PLAIN = GROUP | {"scale": "batch_std"}, GROUP | {"scale": "none"}
GROUP_STD_0 = {"scale": "group_std", "ddof": 0}
ADVANTAGE_STD = {"estimator": "group_mean/advantage_std"}
NO_STD = calls.verl(
    "grpo, no std",
    DR_GRPO,
    reached="algorithm.adv_estimator=grpo, algorithm.norm_adv_by_std_in_grpo=False",
    norm_adv_by_std_in_grpo=False,
)
VERL_NAMES = "grpo rloo opo gpg grpo_vectorized rloo_vectorized"
SKYRL_NO_STD = (
    "trainer.algorithm.advantage_estimator=grpo,"
    " trainer.algorithm.grpo_norm_by_std=false"
)
SKYRL = (
    calls.skyrl("grpo", GRPO, default=True, grpo_norm_by_std=True),
    calls.skyrl("grpo, no std", DR_GRPO, reached=SKYRL_NO_STD, grpo_norm_by_std=False),
    calls.skyrl("rloo", RLOO),
)
trl = partial(calls.trl, since="0.22")
trl_old = partial(calls.trl, since="0.16", before="0.22")
swift = partial(calls.swift, since="3.9.3")
swift_old = partial(calls.swift, since="3.3", before="3.9.3")
DIVIDED = {"spread_about": "baseline", "eps": 1e-5}
LEVELS = {"mean_level": "group", "std_level": "group", "mean_leave1out": False}
areal = partial(calls.areal, **LEVELS)
ONE_OUT_STD = {"estimator": "leave_one_out/group_std"} | DIVIDED
ONE_OUT = "reward_norm: mean_level=group, std_level={std_level}, mean_leave1out=true"
areal_one_out = partial(areal, mean_leave1out=True, reached=ONE_OUT)
art = partial(calls.art, "local backend", GROUP_STD_0, default=True)
RLOO_FN = "trinity/algorithm/advantage_fn/rloo_advantage.py RLOOAdvantageFn.__call__"
OAT_MATH = ["oat/experiment/run_math_rl.py .compute_monte_carlo_advantages"]
oat_math = partial(calls.oat, places=OAT_MATH)
tunix_old = partial(calls.tunix, untold=["flat"])
TUNIX_GRPO = ["tunix/rl/algo_core.py compute_advantages"]
ADAPTERS: dict[tuple[str, str], tuple[Function, ...]] = {
    ("TRL", "trl"): (
        calls.trl("grpo", GROUP, before="0.16", default=True, scale_rewards=True),
        trl_old("grpo, scale_rewards=True", GROUP, default=True),
        trl_old("grpo, scale_rewards=False", PLAIN),
        trl("grpo, scale_rewards=group", GROUP, default=True),
        trl("grpo, scale_rewards=batch", BATCH),
        trl("grpo, scale_rewards=none", PLAIN),
        calls.trl(
            "grpo, normalize_then_sum",
            {},
            reached="multi_objective_aggregation='normalize_then_sum'",
            since="0.27",
            scale_rewards="group",
            multi_objective_aggregation="normalize_then_sum",
        ),
        calls.trl_rloo("rloo", RLOO, default=True, normalize_advantages=False),
        calls.trl_rloo(
            "rloo, normalize_advantages",
            {},
            reached="RLOOTrainer, normalize_advantages=True",
            normalize_advantages=True,
        ),
        calls.trl_worker("async_grpo", GROUP_STD_0 | {"eps": 1e-8}),
    ),
    ("verl", "verl"): (
        *(calls.verl(name, {"estimator": name}) for name in VERL_NAMES.split()),
        *(calls.verl(name, {}) for name in ("gdpo", "reinforce_plus_plus_baseline")),
        calls.verl("grpo_passk", {}, before="0.5"),
        calls.verl("grpo_passk", {}, since="0.5", config={}),
        NO_STD,
    ),
    ("OpenRLHF", "openrlhf"): (
        calls.openrlhf("group_norm", GRPO),
        calls.openrlhf("dr_grpo", DR_GRPO),
        calls.openrlhf("rloo", RLOO),
        calls.openrlhf("reinforce_baseline", ADVANTAGE_STD | {"ddof": 0}),
    ),
    ("ms-swift", "ms-swift"): (
        swift("grpo, scale_rewards=group", GROUP, default=True),
        swift("grpo, scale_rewards=batch", BATCH),
        swift("grpo, scale_rewards=none", PLAIN),
        swift("rloo, scale_rewards=none", RLOO),
        swift("reinforce_plus_plus, scale_rewards=batch", ADVANTAGE_STD),
        calls.swift("grpo, scale_rewards=gdpo", {}, since="4.0"),
        swift_old("grpo, scale_rewards=True", GROUP),
        swift_old("grpo, scale_rewards=False", PLAIN),
        calls.swift("grpo", GROUP, before="3.3", scale_rewards=True),
        calls.swift_dynamic("grpo dynamic (by id)", GROUP),
    ),
    ("AReaL", "areal"): (
        areal("group mean, group std", GROUP | DIVIDED),
        areal("group mean, batch std", ADVANTAGE_STD | DIVIDED, std_level="batch"),
        areal("group mean, no std", DR_GRPO, std_level=None),
        areal_one_out("leave one out, no std", RLOO, std_level=None),
        areal_one_out("leave one out, group std", ONE_OUT_STD),
        areal(
            "batch mean, batch std (NormConfig's defaults)",
            {"estimator": "batch_mean/batch_std"} | DIVIDED,
            mean_level="batch",
            std_level="batch",
        ),
    ),
    ("SkyRL", "skyrl-train"): SKYRL,
    ("SkyRL", "skyrl"): (
        *SKYRL,
        calls.skyrl("maxrl", {}),
        # `normalize` asks for a second normalization
        calls.skyrl_agent("skyrl-agent tinker grpo", {}, default=True),
    ),
    ("miles", "miles-rl"): (
        calls.miles("grpo, grpo_std_normalization=True", GRPO, default=True),
        calls.miles("grpo, grpo_std_normalization=False", DR_GRPO),
    ),
    ("OAT", "oat-llm"): (
        calls.oat("grpo", GRPO),
        calls.oat("drgrpo", DR_GRPO),
        oat_math("grpo (run_math_rl)", GRPO),
        oat_math("drgrpo (run_math_rl)", DR_GRPO),
    ),
    ("RLinf", "rlinf"): (calls.rlinf("grpo", GRPO),),
    ("Unsloth", "unsloth-zoo"): (
        calls.unsloth("mlx grpo, scale_rewards=group", GROUP, default=True),
        calls.unsloth("mlx grpo, scale_rewards=batch", BATCH),
        calls.unsloth("mlx grpo, scale_rewards=none", PLAIN),
    ),
    ("torchtune", "torchtune"): (
        calls.torchtune("grpo (recipe)", GROUP, default=True),
    ),
    ("Tunix", "google-tunix"): (
        calls.tunix("grpo", GRPO, places=TUNIX_GRPO, default=True),
        tunix_old("grpo", GRPO, default=True),
        calls.tunix("rloo", RLOO),
        calls.tunix("drgrpo", DR_GRPO),
        tunix_old("agentic_grpo", GRPO),
    ),
    ("Trinity-RFT", "trinity-rft"): (
        calls.trinity_task("grpo", GRPO, default=True, since="0.3"),
        calls.trinity_batch("grpo", GRPO, default=True, before="0.3"),
        calls.trinity_batch("grpo_verl", GRPO, since="0.3"),
        calls.trinity_batch("rloo", RLOO, places=[RLOO_FN]),
        calls.verl("grpo", GRPO, reached="grpo", default=True),
        calls.verl("rloo", RLOO, reached="rloo"),
    ),
    ("siiRL", "siirl"): (
        *(calls.verl(name, {"estimator": name}) for name in ("grpo", "rloo", "opo")),
        NO_STD,
    ),
    ("Tinker Cookbook", "tinker-cookbook"): (
        calls.tinker("compute_advantages", DR_GRPO, default=True),
    ),
    ("OpenPipe ART", "openpipe-art"): (
        art(before="0.4"),
        art(since="0.4", scale_rewards=True),
        calls.art_native("tinker_native backend", GRPO),
    ),
    ("Cosmos-RL", "cosmos-rl"): (
        calls.cosmos("grpo, unbiased=False", GROUP_STD_0, default=True),
        calls.cosmos(
            "grpo, unbiased=True",
            {"scale": "none"},
            reached="unbiased_advantage = true",
        ),
    ),
}
"""The functions of each trainer and package."""
