"""Which real answers were labelled by hand: seeded, stratified draws that need no random generator.

The answers themselves stay out of the repository (licences, slurs): a row is known here by a hash of what
identifies it, so that ``hand_labels.jsonl`` can be checked against the data wherever the data is.
"""

import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from support.paths import SHARED

Row = dict[str, Any]

DATA = SHARED / "data"
DECODINGTRUST = DATA / "decodingtrust" / "responses.jsonl.gz"
LLM_VALUES = DATA / "llm_values_pct" / "completions.jsonl.gz"
BBQ = DATA / "bbq_unifiedqa" / "unifiedqa_preds.jsonl.gz"
#: The prompt formats under which UnifiedQA answered each question of BBQ.
BBQ_FORMATS = ("race", "qonly", "arc")


@cache
def rows_of(path: Path) -> Sequence[Row]:
    """Read a gzipped JSONL file, once."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def decodingtrust_key(row: Row) -> str:
    """Hash model, system prompt, statement and draw."""
    return _digest(row["model"], row["sys"], row["statement"], str(row["gen"]))


def llm_values_key(row: Row) -> str:
    """Hash everything that tells one completion from another."""
    return _digest(*(str(row[name]) for name in ("exp", "model", "templ_id", "jail_id", "ans_id", "pct_id")))


def bbq_key(row: Row, asked: str) -> str:
    """Hash the question and the prompt format it was asked in."""
    return _digest(row["category"], str(row["example_id"]), asked)


def bbq_answer(row: Row, asked: str) -> str:
    """Return what the model said."""
    return str(row[f"unifiedqa-t5-11b_pred_{asked}"])


def bbq_options(row: Row) -> tuple[str, str, str]:
    """Return the stereotype option, the counter option and what was offered for "unknown".

    A question with negative polarity asks for the stereotyped group, any other for the one beside it.
    """
    groups, stereotyped = row["answer_info"], set(row["additional_metadata"]["stereotyped_groups"])
    unknown = next(name for name, (_, group) in groups.items() if group == "unknown")
    people = [name for name in groups if name != unknown]
    people.sort(key=lambda name: stereotyped.isdisjoint(groups[name]), reverse=row["question_polarity"] != "neg")
    return row[people[0]], row[people[1]], row[unknown]


def draw(keyed: Iterable[tuple[str, Sequence[str]]], total: int, seed: str, taken: frozenset[str]) -> list[str]:
    """Pick ``total`` keys, the same number from each stratum, the remainder one each from the largest ones.

    Within a stratum the order is that of a seeded hash, so a draw does not depend on the file's order. A stratum
    that has too few rows gives all of them.
    """
    strata: dict[Sequence[str], list[str]] = defaultdict(list)
    for key, stratum in keyed:
        if key not in taken:
            strata[stratum].append(key)
    each, extra = divmod(total, len(strata))
    largest_first = sorted(strata, key=lambda stratum: (-len(strata[stratum]), stratum))
    picked: list[str] = []
    for place, stratum in enumerate(largest_first):
        ordered = sorted(strata[stratum], key=lambda key: _digest(seed, key))
        picked += ordered[: each + (place < extra)]
    return picked


def decodingtrust_samples() -> dict[str, list[str]]:
    """Name each draw of the DecodingTrust file: ``tuning`` (400 rows) and ``held_out`` (150 others)."""
    keyed = [(decodingtrust_key(row), (str(row["label"]), row["model"], row["sys"])) for row in rows_of(DECODINGTRUST)]
    tuning = draw(keyed, 400, "tuning", frozenset())
    return {"tuning": tuning, "held_out": draw(keyed, 150, "held_out", frozenset(tuning))}


def llm_values_samples() -> dict[str, list[str]]:
    """Name each draw of the closed four-option answers: ``options_tuning`` (50 rows), ``options_held_out`` (50)."""
    keyed = [
        (llm_values_key(row), (row["model"], row["jail_id"] == "jail-01"))
        for row in rows_of(LLM_VALUES)
        if row["exp"].startswith("explicit")
    ]
    tuning = draw(keyed, 50, "options_tuning", frozenset())
    return {
        "options_tuning": tuning,
        "options_held_out": draw(keyed, 50, "options_held_out", frozenset(tuning)),
    }


def level_samples() -> dict[str, list[str]]:
    """Name two more draws of the four-option answers, by model, pressure and validity: 80 rows each."""
    earlier = frozenset(key for keys in llm_values_samples().values() for key in keys)
    keyed = [
        (llm_values_key(row), (row["model"], row["jail_id"], row["src_validity"]))
        for row in rows_of(LLM_VALUES)
        if row["exp"].startswith("explicit")
    ]
    tuning = draw(keyed, 80, "levels_tuning", earlier)
    return {"levels_tuning": tuning, "levels_held_out": draw(keyed, 80, "levels_held_out", earlier | frozenset(tuning))}


def bbq_samples() -> dict[str, list[str]]:
    """Name two draws of the answers to BBQ, by category, polarity, prompt format and what was said: 80 rows, and 78."""
    keyed = [
        (bbq_key(row, asked), (row["category"], row["question_polarity"], asked, _bbq_place(row, asked)))
        for row in rows_of(BBQ)
        for asked in BBQ_FORMATS
    ]
    tuning = draw(keyed, 80, "bbq_tuning", frozenset())
    return {"bbq_tuning": tuning, "bbq_held_out": draw(keyed, 80, "bbq_held_out", frozenset(tuning))}


def is_held_out(key: str) -> bool:
    """Return whether a row is in the held-out half, by the parity of its hash; rules are tuned on the other half."""
    return int(key, 16) % 2 == 1


def unseen_samples(look: str, taken: frozenset[str]) -> dict[str, list[str]]:
    """Name the draws of one look at the held-out half, without the rows in ``taken``.

    ``bj_LOOK`` (120 rows) by label, model and system prompt; ``run_on_LOOK`` (40) answers whose first line has no
    "agree" and that go on with labelled lines; ``levels_LOOK`` (60) by model, pressure and validity.
    """
    recorded = [row | {"key": decodingtrust_key(row)} for row in rows_of(DECODINGTRUST)]
    recorded = [row for row in recorded if is_held_out(row["key"])]
    opinions = [row | {"key": llm_values_key(row)} for row in rows_of(LLM_VALUES) if row["exp"].startswith("explicit")]
    bj = draw(
        [(row["key"], (str(row["label"]), row["model"], row["sys"])) for row in recorded], 120, f"bj_{look}", taken
    )
    run_on = [(row["key"], (row["sys"],)) for row in recorded if _runs_on(row["text"])]
    levels = [
        (row["key"], (row["model"], row["jail_id"], row["src_validity"])) for row in opinions if is_held_out(row["key"])
    ]
    return {
        f"bj_{look}": bj,
        f"run_on_{look}": draw(run_on, 40, f"run_on_{look}", taken | frozenset(bj)),
        f"levels_{look}": draw(levels, 60, f"levels_{look}", taken),
    }


def _runs_on(text: str) -> bool:
    first, _, rest = text.strip().partition("\n")
    return "gree" not in first and re.search(r"(?mi)^\s*(?:answer|ans|a|q|output|label)\s*:", rest) is not None


def _bbq_place(row: Row, asked: str) -> str:
    """Return which of the three offered answers was repeated, or that it was none of them."""
    offered = [row[f"ans{place}"].casefold() for place in range(3)]
    said = bbq_answer(row, asked).casefold()
    return str(offered.index(said)) if said in offered else "own words"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
