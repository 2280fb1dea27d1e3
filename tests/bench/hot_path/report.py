"""A run's results as one document."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import Any

from bench.hot_path.figures import QUIET, Outcome, added_wait, each, ratio, together
from bench.hot_path.goals import Goal, judged
from bench.hot_path.own_gateway import Shipped
from bench.hot_path.proxies import TLS_NGINX
from bench.hot_path.rounds import Round
from bench.hot_path.run import DIRECT, Plan, Results
from bench.hot_path.scenarios import FURTHER, STEADY, STREAMS, UNARY

from auditor.domain.estimate import Insufficient

SCHEMA = "biasmeter.hot-path/1"
QUANTILES = ("p50", "p99")
PROCESSES = ("worker", "parent", "shipper", "store")


def document(plan: Plan, results: Results, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Give everything that a run has found, ready for JSON."""
    names = list(results.versions)
    return {
        "schema": SCHEMA,
        "conditions": {**conditions, "cycles": plan.cycles, "seconds": plan.seconds, "quiet_below": QUIET},
        "missing": results.missing,
        "goals": [_goal(goal, outcome) for goal, outcome in judged(results)],
        "proxies": [_proxy(results, name) for name in names],
        "shipping": _shipping(results),
        "captures": results.captures,
        "rounds": [_round(one) for one in results.rounds],
    }


def _proxy(results: Results, name: str) -> dict[str, Any]:
    rounds = results.rounds
    found: dict[str, Any] = {"name": name, "version": results.versions[name]}
    found |= {scenario.name: _under(rounds, scenario.name, name) for scenario in (UNARY, STEADY, STREAMS, *FURTHER)}
    for quantile in QUANTILES:
        wait = added_wait(rounds, STREAMS.name, name, DIRECT, quantile)
        found[STREAMS.name][f"added_wait_{quantile}_us"] = _outcome(wait)
    if name in results.memory:
        found["bytes_per_open_stream"] = round(results.memory[name])
    if name in results.differing:
        found["differing"], found["compared"] = results.differing[name]
    return found


def _under(rounds: Sequence[Round], scenario: str, name: str) -> dict[str, Any]:
    own = [one for one in rounds if (one.scenario, one.proxy) == (scenario, name)]
    outcomes = {
        "cost_us": each(own, lambda one: one.cost),
        "user_us": each(own, lambda one: one.cpu.user / one.units * 1e6 if one.units else None),
        "to_nginx": ratio(rounds, scenario, name, TLS_NGINX if scenario == "tls" else "nginx"),
        "litellm_to_it": ratio(rounds, scenario, "litellm", name),
        "others_cpus": each(own, lambda one: one.others),
        "per_second": each(own, lambda one: one.units / one.seconds),
    }
    for quantile in QUANTILES:
        outcomes[f"whole_{quantile}_us"] = each(own, partial(_until_whole, quantile))
    counts = {"failed": sum(one.failed + one.unfinished for one in own), "odd": sum(one.odd for one in own)}
    return {what: _outcome(outcome) for what, outcome in outcomes.items()} | counts


def _until_whole(quantile: str, one: Round) -> float | None:
    return one.whole[quantile] if one.whole else None


def _outcome(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Insufficient):
        return {"missing": outcome.reason}
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(outcome).items()}


def _goal(goal: Goal, outcome: Outcome) -> dict[str, Any]:
    return {**asdict(goal), "figure": _outcome(outcome), "verdict": goal.verdict(outcome)}


def _shipping(results: Results) -> dict[str, Any]:
    whole = [one for one in results.shipped if one.exchanges]
    if not whole:
        return {"missing": "nothing_shipped"}
    return {
        "exchanges": sum(one.exchanges for one in whole),
        "longest_after_s": round(max(one.after for one in whole), 1),
        "each_us": {
            scenario: _apart([one for one in whole if one.scenario == scenario])
            | {"to_nginx": _outcome(together(results.rounds, whole, scenario, "nginx"))}
            for scenario in dict.fromkeys(one.scenario for one in whole)
        },
    }


def _apart(shipped: Sequence[Shipped]) -> dict[str, Any]:
    """Microseconds of CPU per exchange of each process."""
    return {
        process: round(median(getattr(one, process).total / one.exchanges for one in shipped) * 1e6, 1)
        for process in PROCESSES
    }


def _round(one: Round) -> dict[str, Any]:
    return asdict(one) | {"others": round(one.others, 3)}
