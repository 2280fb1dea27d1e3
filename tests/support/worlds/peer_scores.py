"""Rows of a scores file, seeded, of a known make."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from auditor.peers.comparison import PeerOptions
from auditor.peers.run import analyse
from auditor.peers.score_table import ScoreTable

PEERS = ("ash", "birch", "cedar", "elm", "fir", "oak")


def score_rows(
    *, questions: int = 40, odd: float = 0.0, deployments: tuple[str, ...] = PEERS, seed: int = 0
) -> list[dict]:
    """Make rows; the first deployment's scores lie ``odd`` above the others', its vectors turn away with it."""
    rng = np.random.default_rng(seed)
    rows = []
    for question in range(questions):
        base, away = rng.normal(size=8), rng.normal(size=8)
        for place, name in enumerate(deployments):
            lift = odd if place == 0 else 0.0
            vector = base + 0.2 * rng.normal(size=8) + lift * away
            row = {
                "question_id": f"q{question:03}",
                "theme": f"theme {question % 4}",
                "deployment": name,
                "score": {
                    judge: float(np.clip(round(3 + 0.3 * place + lift + rng.normal(0, 0.7)), 1, 10)) for judge in "xy"
                },
                "embedding": [float(each) for each in vector],
                "response": "word " * int(rng.integers(20, 60)),
            }
            rows.append(row)
    return rows


def write_scores(path: Path, rows: list[dict]) -> Path:
    """Write rows as JSONL."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def analysed(table: ScoreTable, options: PeerOptions) -> dict[str, Any]:
    """Compare, and return the document as plain values in full precision."""
    document: dict[str, Any] = msgspec.to_builtins(analyse(table, options))
    return document
