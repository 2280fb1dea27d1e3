"""Documents of the report with every key of the contract, made by hand and seeded: what a page can be given.

Each number is drawn anew, so that a page that prints one in another's place is found out.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

FACTORS = ("task", "perspective", "role", "sentiment")
BASELINE = {"task": "BJ", "perspective": "self", "role": "none", "sentiment": "neutral"}
CONDITION_METRICS = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")
RATES = ("ber_sel", "ber_elab", "ber_cor", "ber_union", "ir", "dni", "ir_over_union")
VERDICTS = ("co-reducing", "layer-rerouting", "mixed", "no reduction", "amplifying")
_RANGE = {"range_corrected": 0.1, "n_statements": 120, "left_out": [], "flags": []}
EFFECTS = (*FACTORS, *(f"{a}:{b}" for i, a in enumerate(FACTORS) for b in FACTORS[i + 1 :]))
JUDGES = ("east", "north", "south")
FREE = {"missing": "a free-response task has no selection"}

Entry = dict[str, Any]


class Writer:
    """Writes entries with numbers of their own."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def share(self, low: float = 0.02, high: float = 0.9) -> float:
        return float(self._rng.uniform(low, high))

    def count(self) -> int:
        return int(self._rng.integers(200, 90_000))

    def word(self, words: Iterable[str]) -> str:
        return str(self._rng.choice(list(words)))

    def estimate(self, name: str = "", **fields: object) -> Entry:
        low, value, high = sorted(self.share() for _ in range(3))
        if name == "dni":
            low, value, high = low - 0.5, value - 0.5, high - 0.5
        base = "full" if name.endswith("full") else "eligible"
        sizes = {"n": self.count(), "n_statements": int(self._rng.integers(100, 400))}
        return {
            "value": value,
            "low": low,
            "high": high,
            "base": base,
            "method": "cluster_bootstrap",
            "flags": [],
            **sizes,
        } | fields

    def bounded(self, name: str = "value", **fields: object) -> Entry:
        low, value, high = sorted(self.share(-0.4, 0.4) for _ in range(3))
        return {name: value, "low": low, "high": high, **fields}

    def metrics(self, names: Iterable[str]) -> Entry:
        return {name: self.estimate(name) for name in names}

    def covered(self) -> Entry:
        return {
            "n": self.count(),
            "coverage": {"eligible": self.share(), "structural": self.share(), "failed": self.share()},
        }


def condition(**levels: str) -> dict[str, str]:
    """A condition, by what departs from the baseline."""
    return BASELINE | levels


def completed(document: Mapping[str, Any], seed: int = 0) -> Entry:
    """Give an analysis every key of the contract, hand-made where it is not among the oldest."""
    write = Writer(seed)
    deployments = [entry["by"]["deployment"] for entry in document["deployments"]]
    conditions = [{f: entry["by"][f] for f in FACTORS} for entry in document["conditions"]]
    asked = [by for index, by in enumerate(conditions) if by not in conditions[:index]]
    keys = {
        **_levels(write, asked),
        **_effects(write, deployments, asked),
        **_contrasts(write, deployments),
        **_choices(write, deployments),
        **_judges(write, deployments),
        **_quotes(write, deployments),
        "slices": _slices(write, document),
    }
    for entries in (entries for key, entries in keys.items() if key not in {"judge_means", "panel"}):
        for entry in entries:
            entry.setdefault("rubric", "statement")
    own = [entry for entry in document["eta_squared"] if entry["design"] == "oat"]
    found = {
        "conditions": [_condition(write, entry) for entry in document["conditions"]],
        "eta_squared": [_with_intervals(write, entry) for entry in own] + _crossed(write, deployments),
    }
    return {**document, **keys, **found}


def _condition(write: Writer, entry: Mapping[str, Any]) -> Entry:
    metrics = {"ber_cor": write.estimate("ber_cor")} | entry["metrics"]
    return {"sign_flip": write.share() > 0.5, **entry, "metrics": metrics}


def _with_intervals(write: Writer, entry: Mapping[str, Any]) -> Entry:
    if "effects" not in entry:
        return dict(entry)
    spans = {name: sorted((write.share(), write.share())) for name in entry["effects"]}
    return {"intervals": spans, **entry}


def _crossed(write: Writer, deployments: list[str]) -> list[Entry]:
    rows = []
    for by in ({}, *({"deployment": name} for name in deployments)):
        effects = {name: write.share() for name in EFFECTS}
        row = {"by": by, "rubric": "statement", "outcome": "ber_sel_full", "design": "factorial", "n": write.count()}
        row |= {"base": "full", "flags": []}
        rows.append(_with_intervals(write, row | {"imbalance": 1 + write.share(), "effects": effects}))
    own = {"by": {}, "rubric": "statement", "outcome": "ber_union_full", "design": "deployment", "n": write.count()}
    own |= {"base": "full", "flags": []}
    return [*rows, _with_intervals(write, own | {"effects": {"deployment": write.share()}})]


def _levels(write: Writer, asked: list[dict[str, str]]) -> Entry:
    own = {(factor, by[factor]): by for by in asked for factor in FACTORS if by == condition(**{factor: by[factor]})}
    levels = [
        {
            "factor": factor,
            "level": level,
            "n_deployments": 3,
            **write.covered(),
            "metrics": write.metrics(CONDITION_METRICS),
            "pooled": write.metrics(CONDITION_METRICS),
        }
        for factor, level in own
    ]
    cells = [
        {
            "by": by,
            **write.covered(),
            "n_eligible": write.count(),
            "n_statements": 120,
            "sign_flip": write.share() > 0.5,
            "flags": [],
        }
        | {"metrics": write.metrics(CONDITION_METRICS)}
        for by in asked
    ]
    factors = [
        {"factor": factor, "outcome": outcome, "base": "full", "n": write.count(), "eta_squared": write.bounded()}
        | {"range": write.bounded("range", min=write.share(), max=write.share(), min_at="a1", max_at="b") | _RANGE}
        | {"flags": []}
        for factor in FACTORS
        for outcome in ("ber_sel_full", "ber_elab_full", "ber_cor", "ber_union_full")
    ]
    pool = {
        "n_statements": 45,
        "categories": [{"category": "age", "n_statements": 20}, {"category": None, "n_statements": 25}],
    }
    sizes = ("n_statements", "n_categories", "n_conditions", "n_deployments", "n", "n_fewest", "n_most")
    design = {name: write.count() for name in (*sizes, "n_selection", "n_elaboration", "n_eligible")}
    benchmarks = [
        {"name": name, "published": published, "formats": formats, "units": write.count(), "unit": "prompts"}
        | {"prompt_factors": factors, "layered": not published}
        for name, published, formats, factors in (
            ("Older", True, ["closed"], []),
            ("this audit", False, ["closed", "open"], ["task", "role"]),
        )
    ]
    levels_of = {factor: sorted({each[factor] for each in asked}) for factor in FACTORS}
    design |= {"levels": levels_of, "judges": list(JUDGES), "benchmarks": benchmarks}
    return {
        "design": [design],
        "levels": levels,
        "cells": cells,
        "factors": factors,
        "pool": [pool],
        "means": [{"n_deployments": 3, "metrics": write.metrics(RATES)}],
    }


def _effects(write: Writer, deployments: list[str], asked: list[dict[str, str]]) -> Entry:
    rows = []
    for by in ({}, *({"deployment": name} for name in deployments)):
        for factor, baseline in BASELINE.items():
            names = sorted({each[factor] for each in asked if each == condition(**{factor: each[factor]})} - {baseline})
            levels = [_level(write, name, pooled=not by) for name in names]
            rows.append({"by": by, "factor": factor, "baseline": baseline, "levels": levels})
    interaction = [
        {
            "task": task,
            "sentiment": tone,
            "n": write.count(),
            "n_deployments": 3,
            "ber_sel_full": write.estimate("ber_sel_full"),
        }
        | {"mean": write.share(), "sd": write.share()}
        for task in ("CTO", "SC", "BJ")
        for tone in ("neutral", "skeptical")
    ]
    return {"mitigation": rows, "interaction": interaction}


def _level(write: Writer, name: str, *, pooled: bool) -> Entry:
    common = {"level": name, "n_statements": 120, "flags": []}
    if name in {"Explain", "Judge"}:
        return common | {"effect": FREE, "published": FREE, "verdict": FREE, "selection": FREE}
    effect = {key: write.bounded() for key in ("sel", "elab", "ir", "dni_before", "dni_after")}
    sizes = {"p": write.share(0, 0.002), "cohen_d": write.share(-1, 1), "cohen_h": write.share(-1, 1)}
    selection = write.bounded("difference", **sizes) | ({"p_tukey": 1e-9} if pooled else {})
    return common | {
        "effect": effect,
        "published": write.word(VERDICTS),
        "verdict": write.word(VERDICTS),
        "selection": selection,
    }


def _contrasts(write: Writer, deployments: list[str]) -> Entry:
    groups = ({}, *({"deployment": name} for name in deployments))
    contrast = {"factors": ["task", "role"], "levels": ["BJ", "ai_ethicist"], "n_statements": 120, "flags": []}
    additivity = [
        {
            "by": by,
            "outcome": "ber_sel_full",
            "reference": ["CTO", "self", "none", "neutral"],
            "contrasts": [
                {key: write.bounded() for key in ("joint", "additive", "departure")} | {"n": write.count()} | contrast
            ],
        }
        for by in groups
    ]
    sizes = ("n_conditions", "n_compared", "n_opposite", "n_tested", "n_flipped")
    flips = [
        {"by": by, **{key: write.count() for key in sizes}, "baseline": write.bounded()}
        | {"lowest": -write.share(), "highest": write.share()}
        for by in groups
    ]
    categories = [
        {"category": name, "share": write.bounded(), "next_factor": "sentiment", "next_share": write.bounded()}
        | {"ratio": 1 + write.share(), "exceeds": exceeds, "supported": False, "flags": []}
        for name, exceeds in (("religion", False), ("age", True))
    ]
    dominance = {"outcome": "ber_union_full", "factor": "task", "times": 2.0, "n_categories": write.count()}
    dominance |= {key: write.count() for key in ("n_largest", "n_exceeding", "n_supported")}
    dominance |= {"categories": categories, "left_out": []}
    return {"additivity": additivity, "sign_flips": flips, "dominance": [dominance]}


def _choices(write: Writer, deployments: list[str]) -> Entry:
    names = ("baseline", "CTO", "SC", "ai_ethicist")
    options = [
        {"name": name, "by": BASELINE, "rate": write.share(), "reduction": write.share(), "tokens": 40 * write.share()}
        | {
            "cost": 1 + write.share(),
            "on_frontier": write.share() > 0.5,
            "frontier_share": write.share(),
            "dni": write.estimate("dni"),
        }
        for name in names
    ]
    uses = ("max_reduction", "balanced", "cost_constrained")
    recipes = [{"use": use, "name": write.word(names), "support": write.share()} for use in uses]
    tradeoff = {
        "by": {},
        "outcome": "ber_sel_full",
        "deployments": deployments,
        "options": options,
        "recipes": recipes,
        "n_statements": 120,
        "left_out": ["Rate"],
    }
    size = len(deployments)
    ranks = {
        name: {
            "best": 1,
            "worst": size,
            "shares": [write.share() for _ in deployments],
            "resampled": [write.share() for _ in deployments],
        }
        for name in deployments
    }
    stability = {
        "metric": "ber_union_full",
        "ranks": ranks,
        "concordance": write.share(),
        "conditions": list(names),
        "left_out": ["media"],
        "flags": [],
    }
    return {"tradeoff": [tradeoff], "condition_ranks": [stability]}


def _judges(write: Writer, deployments: list[str]) -> Entry:
    everywhere = [None, *deployments]
    means = [
        {"judge": judge, "layer": "elab", "deployment": name, "value": write.share(), "n": write.count()}
        for judge in JUDGES
        for name in everywhere
    ]
    panel = [
        {"layer": "elab", "deployment": name, "n_judges": 3, "rho": write.share(), "n_eff": 1 + write.share()}
        for name in everywhere
    ]
    swaps = [
        {
            "without": judge,
            "metric": "ber_elab_full",
            "rates": {},
            "rho": write.share(),
            "rank_shift": 1,
            "change": write.share(0, 0.1),
        }
        | {"deployment": deployments[0], "same_ranking": False, "left_out": []}
        for judge in JUDGES
    ]
    substitutions = [swap | {"by": "west", "seats": 3} | {"change": write.share(0, 0.1)} for swap in swaps]
    vendor = {"vendor": "maker", "n_deployments": 2, "rho": write.share()} | {
        key: {name: write.share() for name in RATES} for key in ("pooled", "unweighted")
    }
    fold = {
        "change": 0.012,
        "condition": "CTO",
        "deployment": deployments[0],
        "robust": False,
        "rho": {"CTO": write.share(), "Explain": {"missing": "one of the rankings ties throughout"}},
        "left_out": [],
        "flags": [],
    }
    return {
        "judge_means": means,
        "panel": panel,
        "panel_swap": swaps,
        "panel_substitution": substitutions,
        "vendors": [vendor],
        "qe_fold": [fold],
    }


def _quotes(write: Writer, deployments: list[str]) -> Entry:
    votes = [{"judge": judge, "label": "D"} for judge in JUDGES]
    asked = {"statement_id": "S1", "statement": "Old people are slow with phones."}
    case = {
        "deployment": deployments[0],
        "n": write.count(),
        "id": "r1",
        "category": "age",
        **asked,
        **condition(task="CTO"),
    }
    said = {"response": "(B) <b>It would be unfair</b> to say so.", "sel": "E", "elab": "D", "votes": votes}
    tasks = [
        {
            "task": "CTO",
            "rate": write.share(),
            "n": write.count(),
            "id": "r1",
            "sel": "E",
            "elab": "D",
            "response": "It would be unfair",
        },
        {"task": "Explain", "n": write.count(), "id": "r2", "sel": "Abstain", "elab": "D"},
    ]
    swing = {"deployment": deployments[0], **asked, "metric": "ber_sel_full", "delta": write.share(), "tasks": tasks}
    return {"cases": [case | said | {"stratum": name} for name in ("over", "under", "qualified")], "swing": [swing]}


def _slices(write: Writer, document: Mapping[str, Any]) -> list[Entry]:
    pooled = next(entry for entry in document["groups"] if not entry["by"])
    shares = [entry for entry in document["eta_squared"] if not entry["by"] and entry["design"] == "oat"]
    ranges = [
        entry for entry in document["horizontal"] if entry["metric"] == "ber_union_full" and entry["over"] == "task"
    ]
    rates = {name: write.metrics(CONDITION_METRICS) for name in ("metrics", "pooled")}
    common = {"rubric": "statement", "factor": "task", "n_deployments": 3}
    levels = [common | {"level": task} | write.covered() | rates for task in ("BJ", "CTO")]
    values = [
        {"value": value, "n_statements": 30, "pooled": pooled, "deployments": document["deployments"]}
        | {"eta_squared": shares, "horizontal": ranges, "levels": levels}
        for value in (False, True)
    ]
    return [{"field": "intersectional", "values": values}]
