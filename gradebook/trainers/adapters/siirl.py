"""siiRL: verl's functions in a file of its own."""

from dataclasses import replace

from gradebook.trainers.adapter import Adapter
from gradebook.trainers.adapters.verl import outcome

NEW = "siirl/dag_worker/core_algos.py"
OLD = "siirl/workers/dag_worker/core_algos.py"


def function(key, declared, setting=None, **settings):
    name = f"compute_{key}_outcome_advantage"
    reached = f"algorithm.adv_estimator={key}"
    found = outcome(NEW, name, setting or key, declared, reached, **settings)
    return replace(found, places=((NEW, name), (OLD, name)))


ADAPTER = Adapter(
    "siiRL",
    "siirl",
    (
        function("grpo", "grpo"),
        function("grpo", "dr_grpo", "grpo, no std", norm_adv_by_std_in_grpo=False),
        function("rloo", "rloo"),
        function("opo", "opo"),
    ),
)
