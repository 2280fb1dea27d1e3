"""What the rules say beside what a person said, by task and reason.

The tables are those of ``docs/design/2026-11-23-selection-accuracy.md``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from support.documents.labelled_answers.labelled import Labelled


def confusion_table(rows: Iterable[Labelled]) -> Iterator[str]:
    """Write the lines of a table: by row what the hand says, by column what the rules say."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row.task, row.hand][said(row)] += 1
    columns = [name for name in ("E", "N", "D", "R") if any(name in count for count in counts.values())]
    columns += sorted({name for count in counts.values() for name in count} - set(columns))
    yield f"| task | hand | {' | '.join(columns)} | agree |"
    yield f"|---|---|{'---|' * (len(columns) + 1)}"
    for (task, hand), count in sorted(counts.items(), key=lambda cell: (cell[0][0], "ENDRA".index(cell[0][1][0]))):
        cells = " | ".join(str(count[name] or "") for name in columns)
        total = sum(count.values())
        right = count[hand] if hand != "Abstain" else total - sum(count[name] for name in "ENDR")
        yield f"| {task} | {hand} | {cells} | {right}/{total} |"


def said(row: Labelled) -> str:
    """Return the rules' label, or why there is none."""
    if row.read.stance is not None:
        return row.read.label
    assert row.read.reason is not None
    return f"`{row.read.reason}`"
