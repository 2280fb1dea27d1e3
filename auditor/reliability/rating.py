"""Have judges label a sample, and store every verdict at once, so that none is paid for twice.

The file is JSONL and append-only. A verdict is found by coder and text: a judge of another version, or a changed text,
is asked again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from auditor.documents.input_files import read_document
from auditor.domain.coding import ABSTAIN
from auditor.errors import InputError
from auditor.judges.judge import Judge
from auditor.judges.rubric import digest
from auditor.reliability.sample import SampleItem

#: By judge and item: the label, Abstain where the judge refused.
Labels = Mapping[tuple[str, str], str]


class _Kept(msgspec.Struct, frozen=True):
    """One line of the file."""

    coder: str
    text: str  #: digest of statement and text
    label: str


class VerdictFile:
    """A file of verdicts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._labels: dict[tuple[str, str], str] = {}
        try:
            lines = read_document(path).split(b"\n") if path.exists() else [b""]
            for line in lines[:-1]:
                kept = msgspec.json.decode(line, type=_Kept)
                self._labels[kept.coder, kept.text] = kept.label
            if lines[-1]:  # cut off when the process was killed
                path.write_bytes(b"".join(line + b"\n" for line in lines[:-1]))
        except OSError as error:
            raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}:{len(self._labels) + 1}: is no verdict: {error}") from None

    def find(self, judge: Judge, item: SampleItem) -> str | None:
        """Return the label that this judge has given this text."""
        return self._labels.get((judge.coder, digest(item.statement, item.text)))

    def add(self, judge: Judge, item: SampleItem, label: str) -> None:
        """Keep a label."""
        kept = _Kept(coder=judge.coder, text=digest(item.statement, item.text), label=label)
        self._labels[kept.coder, kept.text] = label
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(kept) + b"\n")


async def rate(
    judges: Sequence[Judge],
    items: Sequence[SampleItem],
    verdicts: VerdictFile,
    on_verdict: Callable[[], None] = lambda: None,
) -> Labels:
    """Have every judge label the items that it has not labelled.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; what the others have said is kept.
    """
    labels: dict[tuple[str, str], str] = {}

    async def ask(judge: Judge, item: SampleItem) -> None:
        label = verdicts.find(judge, item)
        if label is None:
            label = (await judge.read(item.statement, item.text)).label
            verdicts.add(judge, item, label)
        labels[judge.name, item.id] = label
        on_verdict()

    tasks = [asyncio.create_task(ask(judge, item)) for item in items for judge in judges]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return labels


def count_refusals(labels: Labels, judge: str) -> int:
    """Count the items without a label by a judge."""
    return sum(label == ABSTAIN for (name, _), label in labels.items() if name == judge)
