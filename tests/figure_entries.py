"""Entries of the document as figures take them, with chosen values."""

from itertools import product
from typing import Any

Entry = dict[str, Any]

FACTORS_WITH_LEVELS = {
    "task": {"BJ": 0.071, "SC": 0.328, "CTO": 0.564},
    "perspective": {"self": 0.071, "others": 0.12},
    "role": {"none": 0.071, "ai_ethicist": 0.03},
    "sentiment": {"neutral": 0.071, "skeptical": 0.05},
}
BASE = {"task": "BJ", "perspective": "self", "role": "none", "sentiment": "neutral"}
LAYERS = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")


def estimate(value: float, half: float = 0.02) -> Entry:
    return {"value": value, "low": value - half, "high": value + half, "n": 400, "n_statements": 200, "flags": []}


def bounded(value: float, half: float = 0.03) -> Entry:
    return {"value": value, "low": value - half, "high": value + half}


def condition_entries(names: list[str]) -> list[Entry]:
    """Every level alone, by deployment."""
    found = {tuple((BASE | {factor: level}).items()) for factor, own in FACTORS_WITH_LEVELS.items() for level in own}
    return [
        {"by": {"deployment": name, **dict(by)}, "n": 400, "metrics": {m: estimate(0.1 + 0.01 * place) for m in LAYERS}}
        for place, name in enumerate(names)
        for by in sorted(found)
    ]


def level_entries() -> list[Entry]:
    return [
        {"factor": factor, "level": level, "metrics": {metric: estimate(value) for metric in LAYERS}}
        for factor, own in FACTORS_WITH_LEVELS.items()
        for level, value in own.items()
    ]


def factor_entries() -> list[Entry]:
    shares = {"eta_squared": {"value": 0.395, "low": 0.371, "high": 0.412}}
    spread = {"range": {"min": 0.07, "max": 0.564, "range": 0.494, "low": 0.461, "high": 0.527}}
    return [{"factor": factor, "outcome": metric} | shares | spread for factor in BASE for metric in LAYERS[:4]]


def group_entries(names: list[str]) -> list[Entry]:
    return [
        {
            "by": {"deployment": name},
            "n": 4000,
            "coverage": {"eligible": 0.71, "structural": 0.085, "failed": 0.205},
            "metrics": {
                "ber_sel": estimate(0.1 + 0.04 * place),
                "ber_elab": estimate(0.15 + 0.02 * place),
                "ir": estimate(0.06 + 0.03 * place),
                "dni": estimate(-0.05 + 0.02 * place),
            },
        }
        for place, name in enumerate(names)
    ]


def judge_entries(names: list[str]) -> list[Entry]:
    kappas = {"J1": (0.757, 0.98), "J2": (0.756, 0.97), "J3": (0.748, 0.99)}
    return [
        {"judge": judge, "layer": layer, "deployment": deployment, "n": 100, "value": value - 0.02 * bool(deployment)}
        for judge, values in kappas.items()
        for layer, value in zip(("elab", "sel"), values, strict=True)
        for deployment in (None, *names)
    ]


def range_entries(names: list[str]) -> list[Entry]:
    spread = {"min": 0.064, "max": 0.784, "min_at": "BJ", "max_at": "CTO", "range": 0.72, "low": 0.661, "high": 0.77}
    common = {"metric": "ber_union_full", "over": "task"} | spread
    return [{"by": by} | common for by in ({}, *({"deployment": name} for name in names))]


def interaction_entries(n_deployments: int) -> list[Entry]:
    rates = {
        ("CTO", "neutral"): 0.346,
        ("CTO", "skeptical"): 0.084,
        ("SC", "neutral"): 0.15,
        ("SC", "skeptical"): 0.213,
    }
    return [
        {"task": task, "sentiment": sentiment, "n": 9600, "n_deployments": n_deployments, "mean": rate}
        | {"ber_sel_full": estimate(rate)}
        | {"sd": 0.1 if n_deployments > 1 else {"missing": "one deployment"}}
        for (task, sentiment), rate in rates.items()
    ]


def crossed_entries(names: list[str]) -> tuple[list[Entry], list[Entry]]:
    """Cells by deployment, and of all deployments."""
    conditions, cells = [], []
    for number, (task, sentiment) in enumerate(product(("BJ", "SC", "CTO"), ("neutral", "skeptical"))):
        for place, name in enumerate([*names, None]):
            value = -0.07 + 0.031 * number + 0.004 * place
            by = BASE | {"task": task, "sentiment": sentiment} | ({"deployment": name} if name is not None else {})
            entry = {"by": by, "n_eligible": 300, "metrics": {"dni": estimate(value)}, "sign_flip": value > 0.05}
            (cells if name is None else conditions).append(entry)
    return conditions, cells


def tradeoff_entries() -> list[Entry]:
    options = {
        "CTO": (0.56, 30, True),
        "SC": (0.6, 45, False),
        "baseline": (0.06, 60, True),
        "BJ + ai_ethicist": (0.02, 140, True),
    }
    chosen = {"max_reduction": "BJ + ai_ethicist", "balanced": "baseline", "cost_constrained": "baseline"}
    return [
        {
            "by": {},
            "outcome": "ber_sel_full",
            "options": [
                {"name": name, "rate": rate, "tokens": float(tokens), "on_frontier": on, "frontier_share": 0.93}
                for name, (rate, tokens, on) in options.items()
            ],
            "recipes": [{"use": use, "name": name, "support": 0.9} for use, name in chosen.items()],
        },
        {"outcome": "ber_union_full", "missing": "no row says its completion tokens"},
    ]


def slice_entries(names: list[str]) -> list[Entry]:
    def group(by: Entry, value: float) -> Entry:
        return {"by": by, "n": 400, "coverage": {"eligible": 0.8}, "metrics": {"ber_union_full": estimate(value)}}

    values = [
        {
            "value": category,
            "pooled": group({"category": category}, 0.2),
            "deployments": [
                group({"category": category, "deployment": name}, 0.1 + 0.01 * place)
                for place, name in enumerate(names)
            ],
        }
        for category in ("gender", "age", None)
    ]
    return [{"field": "category", "values": values}]


def rank_entries(names: list[str]) -> list[Entry]:
    count = len(names)
    ranks = {}
    for place, name in enumerate(names):
        shares = [0.0] * count
        shares[place] += 0.75
        shares[max(0, place - 1)] += 0.25
        best = place + 1 if place in {0, 2} else place
        ranks[name] = {"best": best, "worst": max(best, place + 1), "shares": shares, "resampled": [1 / count] * count}
    return [{"metric": "ber_union_full", "ranks": ranks, "conditions": ["baseline", "CTO", "SC"]}]


def share_entries(names: list[str]) -> list[Entry]:
    effects = {"task": 0.395, "perspective": 0.014, "role": {"missing": "one level"}, "sentiment": 0.0}
    intervals = {"task": [0.371, 0.412], "perspective": [0.0, 0.02], "sentiment": [0.0, 0.01]}
    oat = {"design": "oat", "outcome": "ber_union_full", "effects": effects, "intervals": intervals}
    rows = [{"by": by} | oat for by in ({}, *({"deployment": name} for name in names))]
    own = {"design": "deployment", "effects": {"deployment": 0.12}, "intervals": {"deployment": [0.1, 0.14]}}
    return [*rows, *({"by": {}, "outcome": outcome} | own for outcome in ("ber_union_full", "ber_sel_full"))]


def mitigation_entries() -> list[Entry]:
    def level(name: str, sel: float, elab: float, verdict: str | Entry) -> Entry:
        effect = {"sel": bounded(sel), "elab": bounded(elab), "ir": bounded(0.0)}
        return {"level": name, "n_statements": 200, "effect": effect, "verdict": verdict, "flags": []}

    gone = {"missing": "the level asks for no discrete answer"}
    return [
        {
            "by": {},
            "factor": "role",
            "baseline": "none",
            "levels": [
                level("ai_ethicist", -0.26, -0.1, "co-reducing"),
                level("military", -0.1, 0.01, {"missing": "no verdict on 40 statements, 100 needed"}),
            ],
        },
        {
            "by": {"deployment": "alpha"},
            "factor": "task",
            "baseline": "CTO",
            "levels": [{"level": "Explain", "n_statements": 0, "effect": gone, "verdict": "layer-rerouting"}],
        },
    ]
