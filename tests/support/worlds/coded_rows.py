"""Coded rows by the thousand, seeded, of a known make: for tests of what reads ``coded.jsonl``."""

import gzip
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

TASKS = ("BJ", "SC", "CTO", "Explain", "Judge", "Rate")
LEVELS = {
    "perspective": ("self", "others", "historical", "institutional", "media", "famous"),
    "role": ("none", "sociologist", "military", "policy_maker", "data_scientist", "ai_ethicist"),
    "sentiment": ("neutral", "positive", "negative", "skeptical", "indignant", "analytical"),
}
BASELINE = ("BJ", "self", "none", "neutral")
#: What the selection endorses, by task, before a deployment's own lean.
LEAN = {"BJ": 0.10, "SC": 0.25, "CTO": 0.50, "Explain": 0.10, "Judge": 0.12, "Rate": 0.15}


def oat_conditions() -> list[tuple[str, str, str, str]]:
    """The 21 conditions of the one-factor-at-a-time grid."""
    out = [BASELINE, *((task, *BASELINE[1:]) for task in TASKS if task != "BJ")]
    for place, levels in enumerate(LEVELS.values(), start=1):
        out += [(*BASELINE[:place], level, *BASELINE[place + 1 :]) for level in levels[1:]]
    return out


def factorial_conditions() -> list[tuple[str, str, str, str]]:
    """The 24 cells of the sub-factorial."""
    return list(product(("CTO", "SC", "BJ"), ("self", "others"), ("none", "sociologist"), ("neutral", "skeptical")))


def coded_rows(
    conditions: list[tuple[str, str, str, str]],
    *,
    deployments: int = 2,
    statements: int = 120,
    templates: int = 1,
    judges: int = 3,
    seed: int = 0,
) -> Iterator[dict[str, object]]:
    """Yield rows; deployments lean more the higher their number, statements differ, a few responses fail."""
    rng = np.random.default_rng(seed)
    number = 0
    for deployment in range(1, deployments + 1):
        own = rng.normal(0, 0.6, statements) + 0.25 * deployment - 0.5
        for condition in conditions:
            p = 1 / (1 + np.exp(-(np.log(LEAN[condition[0]] / (1 - LEAN[condition[0]])) + own)))
            for template in range(templates):
                for statement in range(statements):
                    number += 1
                    yield {
                        "id": f"r{number}",
                        "deployment": f"m{deployment}",
                        "statement_id": f"S{statement:03d}",
                        "category": f"c{statement % 4}",
                        "template_id": f"t{template}",
                        **dict(zip(("task", "perspective", "role", "sentiment"), condition, strict=True)),
                        **labels(rng, p[statement], free=condition[0] in {"Explain", "Judge"}, judges=judges),
                    }


def labels(rng: np.random.Generator, p: float, *, free: bool, judges: int) -> dict[str, object]:
    """Draw one pair of labels."""
    a, b, kind, luck = rng.random(4)
    endorses = bool(a < p)
    sel, sel_reason = ("E" if endorses else ("D", "N", "R")[int(kind * 3)]), None
    elab, elab_reason = (("E", "QE") if b < (0.6 if endorses else 0.08) else ("D", "N"))[int(luck * 2)], None
    if luck < 0.02:
        sel, sel_reason = "Abstain", "no_marker"
    if free:
        sel, sel_reason = "Abstain", "no_selection_layer"
    if 0.02 < luck < 0.2:
        elab, elab_reason = "Abstain", "no_elaboration"
    if luck > 0.995:
        sel, sel_reason, elab, elab_reason = "Abstain", "transport_error", "Abstain", "transport_error"
    votes = (
        []
        if elab_reason
        else [{"judge": f"j{each}", "label": elab if rng.random() < 0.9 else "N"} for each in range(judges)]
    )
    return {"sel": sel, "sel_reason": sel_reason, "elab": elab, "elab_reason": elab_reason, "votes": votes}


def write_rows(path: Path, rows: object) -> Path:
    """Write rows as JSONL, gzipped where the name says so."""
    text = "".join(json.dumps(row) + "\n" for row in rows)  # type: ignore[attr-defined]
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
