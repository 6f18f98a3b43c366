"""Where each trainer's functions are, what its documentation declares, and which
settings reach them; no results. What cannot be cut is not measured."""

from __future__ import annotations

from typing import Any

from gradebook.trainers import calls
from gradebook.trainers.calls import LATEST, Adapter, Function

GRPO, RLOO, DR_GRPO = ({"estimator": name} for name in ("grpo", "rloo", "dr_grpo"))
GROUP = {"baseline": "group_mean", "scale": "group_std", "eps": 1e-4}
BATCH, PLAIN = GROUP | {"scale": "batch_std"}, GROUP | {"scale": "none"}
GROUP_STD_0 = {"scale": "group_std", "ddof": 0}
ADVANTAGE_STD = {"estimator": "group_mean/advantage_std"}

TRL_GRPO = "trl/trainer/grpo_trainer.py"
TRL_WORKER = "trl/experimental/async_grpo/async_rollout_worker.py"
GENERATE = "._generate_and_score_completions rewards_per_func process_slice"
TRL_PLACES = (
    f"{TRL_GRPO} {GENERATE}",
    f"{TRL_GRPO} ._prepare_inputs rewards_per_func process_slice",
    f"{TRL_GRPO} .compute_loss rewards_per_func per_token_loss",
)
SUMMED_LAST = {"multi_objective_aggregation": "normalize_then_sum"}
TRL = (
    *(
        Function(
            f"grpo, scale_rewards={scale}" if since != "0" else "grpo",
            TRL_PLACES,
            calls.trl,
            declared,
            f"scale_rewards={scale!r}",
            scale in (True, "group"),
            {"scale_rewards": scale},
            since,
            before,
        )
        for scale, declared, since, before in (
            (True, GROUP, "0", "0.16"),
            (True, GROUP, "0.16", "0.22"),
            (False, PLAIN, "0.16", "0.22"),
            ("group", GROUP, "0.22", LATEST),
            ("batch", BATCH, "0.22", LATEST),
            ("none", PLAIN, "0.22", LATEST),
        )
    ),
    Function(
        "grpo, normalize_then_sum",
        TRL_PLACES,
        calls.trl,
        {},
        "multi_objective_aggregation='normalize_then_sum'",
        settings={"scale_rewards": "group"} | SUMMED_LAST,
        since="0.27",
    ),
    *(
        Function(
            f"rloo{more}",
            (f"trl/trainer/rloo_trainer.py {GENERATE}",),
            calls.trl,
            declared,
            f"RLOOTrainer{more}{'=True' if more else ''}",
            not more,
            {"normalize_advantages": bool(more)},
            "0.22.0",
        )
        for more, declared in (
            ("", {"baseline": "leave_one_out", "scale": "none"}),
            (", normalize_advantages", {}),
        )
    ),
    Function(
        "async_grpo",
        (
            f"{TRL_WORKER} ._score_group all_rewards total_calls",
            f"{TRL_WORKER} ._score_group all_rewards samples",
        ),
        calls.trl_worker,
        GROUP_STD_0 | {"eps": 1e-8},
        "AsyncGRPOTrainer",
        since="1.0",
    ),
)

# verl and its descendants: a function for each estimator


def outcomes(paths: str, *rows: tuple[Any, ...]) -> tuple[Function, ...]:
    """Functions that stand in one of the files. A row is setting, name, declared
    estimator or "", what reaches it, whether that is the default, and settings
    that it is called with."""
    return tuple(
        Function(
            setting,
            tuple(f"{path} compute_{name}_advantage" for path in paths.split()),
            calls.by_id,
            {"estimator": estimator} if estimator else {},
            reached,
            default,
            settings,
        )
        for setting, name, estimator, reached, default, settings in rows
    )


KEY = "algorithm.adv_estimator"
SIIRL_KEYS = ("grpo", "rloo", "opo")
VERL_KEYS = (*SIIRL_KEYS, "gpg", "grpo_vectorized", "rloo_vectorized")
OTHER_KEYS = ("gdpo", "reinforce_plus_plus_baseline")
CONFIG: dict[str, Any] = {"config": {}}
NO_STD = {"norm_adv_by_std_in_grpo": False}
OFF = f"{KEY}=grpo, algorithm.norm_adv_by_std_in_grpo=False"
VERL = outcomes(
    "verl/trainer/ppo/core_algos.py",
    *((k, f"{k}_outcome", k, f"{KEY}={k}", False, {}) for k in VERL_KEYS),
    *((k, f"{k}_outcome", "", f"{KEY}={k}", False, {}) for k in OTHER_KEYS),
    ("grpo_passk", "grpo_passk_outcome", "", f"{KEY}=grpo_passk", False, CONFIG),
    ("grpo, no std", "grpo_outcome", "dr_grpo", OFF, False, NO_STD),
)
SIIRL = outcomes(
    "siirl/dag_worker/core_algos.py siirl/workers/dag_worker/core_algos.py",
    *((k, f"{k}_outcome", k, f"{KEY}={k}", False, {}) for k in SIIRL_KEYS),
    ("grpo, no std", "grpo_outcome", "dr_grpo", f"{KEY}=grpo", False, NO_STD),
)
SKYRL_KEY = "trainer.algorithm.advantage_estimator"
SKYRL_OFF = f"{SKYRL_KEY}=grpo, trainer.algorithm.grpo_norm_by_std=false"
BY_STD, WITHOUT_STD = {"grpo_norm_by_std": True}, {"grpo_norm_by_std": False}
SKYRL_ROWS: tuple[tuple[Any, ...], ...] = (
    ("grpo", "grpo_outcome", "grpo", f"{SKYRL_KEY}=grpo", True, BY_STD),
    ("grpo, no std", "grpo_outcome", "dr_grpo", SKYRL_OFF, False, WITHOUT_STD),
    ("rloo", "rloo_outcome", "rloo", f"{SKYRL_KEY}=rloo", False, {}),
)
SKYRL_MAXRL: tuple[Any, ...] = ("maxrl", "maxrl", "", f"{SKYRL_KEY}=maxrl", False, {})
SKYRL_BACKEND = "skyrl/backends/skyrl_train/utils/ppo_utils.py"
SKYRL_AGENT = "skyrl-agent/skyrl_agent/integrations/tinker/tinker_train.py"
SKYRL_TRAIN = outcomes("skyrl_train/utils/ppo_utils.py", *SKYRL_ROWS)
SKYRL = (
    *outcomes(SKYRL_BACKEND, *SKYRL_ROWS, SKYRL_MAXRL),
    Function(
        "skyrl-agent tinker grpo",
        (f"{SKYRL_AGENT} compute_advantages_grpo",),
        calls.skyrl_agent,
        {},  # `normalize` asks for a second normalization
        "skyrl-agent with Tinker",
        True,
    ),
)
FUNCTIONS = "trinity/algorithm/advantage_fn"
TASK = f"{FUNCTIONS}/grpo_advantage.py GRPOGroupedAdvantage.calculate_group_advantage"
WHOLE = f"{FUNCTIONS}/grpo_advantage.py GRPOAdvantageFn.__call__"
WHOLE_RLOO = f"{FUNCTIONS}/rloo_advantage.py RLOOAdvantageFn.__call__"
TRINITY = (
    *(
        Function(
            setting,
            (place,),
            calls.trinity_task if place == TASK else calls.trinity_batch,
            declared,
            f"algorithm.advantage_fn={setting}",
            setting == "grpo",
            since=since,
            before=before,
        )
        for setting, place, declared, since, before in (
            ("grpo", TASK, GRPO, "0.3", LATEST),
            ("grpo", WHOLE, GRPO, "0", "0.3"),
            ("grpo_verl", WHOLE, GRPO, "0.3", LATEST),
            ("rloo", WHOLE_RLOO, RLOO, "0", LATEST),
        )
    ),
    *outcomes(
        "trinity/trainer/verl/core_algos.py",
        ("grpo", "grpo_outcome", "grpo", "grpo", True, {}),
        ("rloo", "rloo_outcome", "rloo", "rloo", False, {}),
    ),
)

# Groups of one size, by position

SWIFT = "swift/rl_core/advantage.py"
SWIFT_TRAINER = "swift/trainers/rlhf_trainer/grpo_trainer.py"
MS_SWIFT = (
    *(
        Function(
            f"{estimator}, scale_rewards={scale}" if before != "3.3" else "grpo",
            (
                f"{SWIFT} compute_advantages",
                "swift/rlhf_trainers/grpo_trainer.py ._compute_advantages",
                f"{SWIFT_TRAINER} ._compute_advantages",
                f"{SWIFT_TRAINER} ._prepare_batch_inputs rewards process_slice",
                f"{SWIFT_TRAINER} ._prepare_batch_inputs rewards template",
                f"{SWIFT_TRAINER} {GENERATE}",
            ),
            calls.swift,
            declared,
            f"--advantage_estimator {estimator} --scale_rewards {scale}",
            (estimator, scale) == ("grpo", "group"),
            {"advantage_estimator": estimator, "scale_rewards": scale},
            since,
            before,
        )
        for estimator, scale, declared, since, before in (
            ("grpo", "group", GROUP, "3.9.3", LATEST),
            ("grpo", "batch", BATCH, "3.9.3", LATEST),
            ("grpo", "none", PLAIN, "3.9.3", LATEST),
            ("rloo", "none", RLOO, "3.9.3", LATEST),
            ("reinforce_plus_plus", "batch", ADVANTAGE_STD, "3.9.3", LATEST),
            ("grpo", "gdpo", {}, "4.0", LATEST),
            ("grpo", True, GROUP, "3.3", "3.9.3"),
            ("grpo", False, PLAIN, "3.3", "3.9.3"),
            ("grpo", True, GROUP, "0", "3.3"),
        )
    ),
    Function(
        "grpo dynamic (by id)",
        (f"{SWIFT} compute_advantages_dynamic",),
        calls.swift_dynamic,
        GROUP,
        "a number of samples that varies by prompt",
    ),
)
EXPERIENCE = "openrlhf/trainer/ppo_utils/experience_maker.py"
OPENRLHF = tuple(
    Function(
        estimator,
        (
            f"{EXPERIENCE} .compute_advantages_and_returns",
            f"{EXPERIENCE} .process_experiences",
        ),
        calls.openrlhf,
        declared,
        f"--algo.advantage.estimator {estimator}",
        settings={"estimator": estimator},
    )
    for estimator, declared in (
        ("group_norm", GRPO),
        ("dr_grpo", DR_GRPO),
        ("rloo", RLOO),
        ("reinforce_baseline", ADVANTAGE_STD | {"ddof": 0}),
    )
)
DEFAULTS = "batch mean, batch std (NormConfig's defaults)"
DIVIDED = {"spread_about": "baseline", "eps": 1e-5}
AREAL = tuple(
    Function(
        setting,
        ("areal/utils/data.py Normalization",),
        calls.areal,
        {"estimator": estimator} | (DIVIDED if std else {}),
        f"reward_norm: mean_level={mean}, std_level={std}"
        + (", mean_leave1out=true" if one_out else ""),
        settings={"mean_level": mean, "std_level": std, "mean_leave1out": one_out},
    )
    for setting, estimator, mean, std, one_out in (
        ("group mean, group std", "group_mean/group_std", "group", "group", False),
        ("group mean, batch std", "group_mean/advantage_std", "group", "batch", False),
        ("group mean, no std", "group_mean/none", "group", None, False),
        ("leave one out, no std", "leave_one_out/none", "group", None, True),
        ("leave one out, group std", "leave_one_out/group_std", "group", "group", True),
        (DEFAULTS, "batch_mean/batch_std", "batch", "batch", False),
    )
)
MILES = tuple(
    Function(
        f"grpo, grpo_std_normalization={divides}",
        ("miles/ray/rollout.py ._post_process_rewards",),
        calls.miles,
        declared,
        "--advantage-estimator grpo",
        divides,
        {"grpo_std_normalization": divides},
    )
    for divides, declared in ((True, GRPO), (False, DR_GRPO))
)
OAT_FILES = (("", "algorithms/ppo"), (" (run_math_rl)", "experiment/run_math_rl"))
OAT = tuple(
    Function(
        critic + suffix,
        (f"oat/{file}.py .compute_monte_carlo_advantages",),
        calls.oat,
        declared,
        f"--critic_type {critic}",
        settings={"critic_type": critic},
    )
    for suffix, file in OAT_FILES
    for critic, declared in (("grpo", GRPO), ("drgrpo", DR_GRPO))
)
RLINF = Function(
    "grpo",
    ("rlinf/algorithms/advantages.py compute_grpo_advantages",),
    calls.rlinf,
    GRPO,
    "algorithm.adv_type=grpo",
)
UNSLOTH = tuple(
    Function(
        f"mlx grpo, scale_rewards={scale}",
        ("unsloth_zoo/mlx/grpo.py group_advantages",),
        calls.unsloth,
        declared,
        f"on MLX, scale_rewards={scale!r}",
        scale == "group",
        {"scale": scale},
    )
    for scale, declared in (("group", GROUP), ("batch", BATCH), ("none", PLAIN))
)
RECIPE = "dev/grpo_full_finetune_distributed"
TORCHTUNE = Function(
    "grpo (recipe)",
    (f"recipes/{RECIPE}.py .generate_trajectory rewards seq_lens",),
    calls.torchtune,
    GROUP,
    f"recipe {RECIPE}",
    True,
)
TUNIX_CORE = "tunix/rl/algo_core.py compute"
LEARNER = "tunix/rl/grpo/grpo_learner.py compute"
HELPERS = "tunix/rl/grpo/grpo_helpers.py compute_advantages"
DR_LEARNER = "tunix/rl/grpo/drgrpo_learner.py compute_advantages"
AGENTIC = "tunix/rl/agentic/agentic_grpo_learner.py compute_advantages"
TUNIX = tuple(
    Function(
        setting,
        places,
        calls.tunix,
        declared,
        setting,
        setting == "grpo",
        untold=() if places[0].startswith(TUNIX_CORE) else ("flat",),
    )
    for setting, declared, places in (
        ("grpo", GRPO, (f"{TUNIX_CORE}_advantages",)),
        ("grpo", GRPO, (f"{LEARNER}_advantages", HELPERS)),
        ("rloo", RLOO, (f"{TUNIX_CORE}_rloo_advantages", f"{LEARNER}_rloo_advantages")),
        ("drgrpo", DR_GRPO, (f"{TUNIX_CORE}_drgrpo_advantages", DR_LEARNER)),
        ("agentic_grpo", GRPO, (AGENTIC,)),
    )
)
TINKER = Function(
    "compute_advantages",
    ("tinker_cookbook/rl/data_processing.py compute_advantages",),
    calls.tinker,
    DR_GRPO,
    "rl.train",
    True,
)
ART = (
    Function(
        "local backend",
        (
            "art/preprocessing/tokenize.py tokenize_trajectory_groups",
            "art/local/tokenize.py tokenize_trajectory_groups",
        ),
        calls.art,
        GROUP_STD_0,
        "LocalBackend",
        True,
    ),
    Function(
        "tinker_native backend",
        ("art/tinker_native/data.py compute_advantages",),
        calls.each_group,
        GRPO,
        "TinkerNativeBackend",
    ),
)
COSMOS = tuple(
    Function(
        f"grpo, unbiased={unbiased}",
        ("cosmos_rl/dispatcher/algo/grpo.py GRPO.compute_advantage",),
        calls.each_group,
        declared,
        f"unbiased_advantage = {str(unbiased).lower()}",
        not unbiased,
        {"unbiased": unbiased, "eps": 1e-6},
    )
    for unbiased, declared in ((False, GROUP_STD_0), (True, {"scale": "none"}))
)

ADAPTERS = (
    Adapter("TRL", "trl", TRL),
    Adapter("verl", "verl", VERL),
    Adapter("OpenRLHF", "openrlhf", OPENRLHF),
    Adapter("ms-swift", "ms-swift", MS_SWIFT),
    Adapter("AReaL", "areal", AREAL),
    Adapter("SkyRL", "skyrl-train", SKYRL_TRAIN),
    Adapter("SkyRL", "skyrl", SKYRL),
    Adapter("miles", "miles-rl", MILES),
    Adapter("OAT", "oat-llm", OAT),
    Adapter("RLinf", "rlinf", (RLINF,)),
    Adapter("Unsloth", "unsloth-zoo", UNSLOTH),
    Adapter("torchtune", "torchtune", (TORCHTUNE,)),
    Adapter("Tunix", "google-tunix", TUNIX),
    Adapter("Trinity-RFT", "trinity-rft", TRINITY),
    Adapter("siiRL", "siirl", SIIRL),
    Adapter("Tinker Cookbook", "tinker-cookbook", (TINKER,)),
    Adapter("OpenPipe ART", "openpipe-art", ART),
    Adapter("Cosmos-RL", "cosmos-rl", COSMOS),
)
