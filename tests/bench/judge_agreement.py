"""Texts that were labelled by hand, found again in the data they came from, and how well a judge agrees with them.

Only keys and labels are kept in the repository (``judges/hand_labels.jsonl``). A key is the start of a hash of what
identifies the answer: (model, sys, statement, gen) or (exp, model, templ_id, jail_id, ans_id, pct_id). ``cut_marker``
is part of the labels: it makes the text that was read when they were given. Run as a script, this prints the tables
of docs/design/2026-11-20-lexicon-agreement.md for the lexicon, and with ``--nli FOLDER`` for a sentence-pair model as
well.
"""

import argparse
import asyncio
import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.paths import SHARED

ANSWERS = SHARED / "data" / "decodingtrust" / "responses.jsonl.gz"
COMPLETIONS = SHARED / "data" / "llm_values_pct" / "completions.jsonl.gz"
HAND_LABELS = Path(__file__).with_name("judge_hand_labels.jsonl")
LABELS = ("E", "QE", "N", "D", "R")

_END = re.compile(r"</?s>|<unk>|<\|[a-z_]+\|?>?|<\Z")
_MARKER = re.compile(
    r"""(?:\A|(?<=[.!?\n"'”)]))\s*["“'(*]*\s*"""
    r"""I\s+(?:(?:strongly|completely|totally|wholeheartedly|do|do not|don't)\s+)?(?:dis)?agree"""
    r"""\s*[.!]?["”')*]*\s*(?=\Z|\n|(?<=[.!])\s)""",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelled:
    """One text with the label a person gave it. ``part`` is tune, held or fresh; ``model`` and ``sys`` who said it."""

    statement: str
    text: str
    label: str
    part: str
    sample: str
    model: str
    sys: str


def cut_marker(answer: str) -> str:
    """Take the bare "I agree." or "I disagree." and everything after an end-of-turn token away."""
    head = next((part for part in _END.split(answer) if part.strip()), "")
    return _MARKER.sub(" ", head).strip()


def hash_key(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:16]


def read_answers() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (key, statement, text, model, sys) of every answer of both sources."""
    with gzip.open(ANSWERS, "rt") as lines:
        for row in map(json.loads, lines):
            key = hash_key(row["model"], row["sys"], row["statement"], row["gen"])
            yield key, row["statement"], cut_marker(row["text"]), row["model"], row["sys"]
    with gzip.open(COMPLETIONS, "rt") as lines:
        for row in map(json.loads, lines):
            names = ("exp", "model", "templ_id", "jail_id", "ans_id", "pct_id")
            key = hash_key(*(row[name] for name in names))
            yield key, row["proposition"], row["completion"], row["model"], ""


def read_labelled() -> list[Labelled]:
    """Find every labelled text again."""
    labels = {row["key"]: row for row in map(json.loads, HAND_LABELS.read_text().splitlines())}
    return [
        Labelled(
            statement=statement,
            text=text,
            label=labels[key]["label"],
            part=labels[key]["part"],
            sample=labels[key]["sample"],
            model=model,
            sys=sys,
        )
        for key, statement, text, model, sys in read_answers()
        if key in labels
    ]


Confusion = Counter[tuple[str, str]]


def confuse(texts: Iterable[Labelled], read: Callable[[str, str], str]) -> Confusion:
    """Count (hand label, judge's label)."""
    return Counter((one.label, read(one.statement, one.text)) for one in texts)


def fold(confusion: Confusion) -> Confusion:
    """Count whether both saw an endorsement: E and QE against the rest."""
    folded: Confusion = Counter()
    for (hand, judge), count in confusion.items():
        folded["+" if hand in {"E", "QE"} else "-", "+" if judge in {"E", "QE"} else "-"] += count
    return folded


def agreement(confusion: Confusion) -> float:
    return sum(count for (hand, judge), count in confusion.items() if hand == judge) / confusion.total()


def balanced(confusion: Confusion) -> float:
    """Mean agreement on texts that endorse and on texts that do not, from a folded table: both count half."""
    sides = [
        confusion[hand, hand] / sum(count for (side, _), count in confusion.items() if side == hand) for hand in "+-"
    ]
    return sum(sides) / len(sides)


def kappa(confusion: Confusion) -> float:
    """Cohen's kappa, unweighted."""
    total = confusion.total()
    names = {name for pair in confusion for name in pair}
    by_hand = {name: sum(count for (hand, _), count in confusion.items() if hand == name) for name in names}
    by_judge = {name: sum(count for (_, judge), count in confusion.items() if judge == name) for name in names}
    chance = sum(by_hand[name] * by_judge[name] for name in names) / total**2
    return (agreement(confusion) - chance) / (1 - chance)


def print_tables(name: str, texts: list[Labelled], read: Callable[[str, str], str]) -> None:
    """Print the agreement of one judge with the hand labels, by part."""
    print(name)
    for part in ("tune", "held", "fresh"):
        confusion = confuse((one for one in texts if one.part == part), read)
        both = fold(confusion)
        print(
            f"{part}: n {confusion.total()}, agreement {agreement(confusion):.3f}, kappa {kappa(confusion):.3f}; "
            f"endorsement: agreement {agreement(both):.3f}, with equal weights {balanced(both):.3f}, "
            f"kappa {kappa(both):.3f}, {dict(both)}"
        )
        for hand in LABELS:
            row = [confusion[hand, judge] for judge in LABELS]
            column = sum(confusion[other, hand] for other in LABELS)
            hit = confusion[hand, hand]
            print(f"  {hand:>2} {row}  recall {hit}/{sum(row)}, precision {hit}/{column}")


def main() -> None:
    """Print the tables of the design note on the lexicon, and the same for a sentence-pair model."""
    from auditor.config.audits import NliModel  # noqa: PLC0415 -- the tests that import this name their own judges
    from auditor.judges.lexicon import Lexicon  # noqa: PLC0415 -- as above
    from auditor.judges.loading import load_judges  # noqa: PLC0415 -- as above
    from auditor.judges.nli import NliJudge  # noqa: PLC0415 -- as above
    from auditor.judges.rubric import STATEMENT, find_rubric  # noqa: PLC0415 -- as above

    parser = argparse.ArgumentParser(description="Agreement of local judges with the hand labels.")
    parser.add_argument("--nli", type=Path, help="the folder of a sentence-pair model")
    folder = parser.parse_args().nli
    (lexicon,) = load_judges(["lexicon"])
    assert isinstance(lexicon, Lexicon)
    texts = read_labelled()
    print_tables("lexicon", texts, lambda statement, text: lexicon.verdict(statement, text).label)
    if folder is not None:
        judge = NliJudge("nli", NliModel(path=folder), find_rubric(STATEMENT))
        print_tables(judge.version, texts, lambda statement, text: asyncio.run(judge.read(statement, text)).label)


if __name__ == "__main__":
    main()
