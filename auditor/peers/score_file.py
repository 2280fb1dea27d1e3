"""Read a scores file whole."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from auditor.errors import InputError
from auditor.peers.score_rows import score_row
from auditor.peers.score_table import ScoreCollector, ScoreTable
from auditor.rows import BadRow, Rows

#: More deployments than this are a mistake (a name that holds an id), and would fill the memory with empty cells.
MAX_DEPLOYMENTS: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ScoreFile:
    """A file's rows, and what was left out of it."""

    table: ScoreTable
    skipped: int
    complaints: tuple[str, ...]  #: what was wrong with the first few bad rows


def read_scores(path: Path, *, skip_bad: bool = False, on_bytes: Callable[[int], None] | None = None) -> ScoreFile:
    """Read a scores file, gzipped or not.

    Parameters
    ----------
    path
        JSONL of ``question_id, theme, deployment`` and any of ``score, embedding, response, error, blocked``.
    skip_bad
        Count bad rows instead of raising; of two answers to one question the first stays.
    on_bytes
        Told the number of bytes of the file that have been read, now and then.

    Raises
    ------
    InputError
        For a bad row (unless skipped), a file without rows or of too many deployments, an unreadable file.
    UsageError
        For a path that names no file.
    """
    rows = Rows(path, skip_bad=skip_bad, on_bytes=on_bytes)
    collector = ScoreCollector()
    for line, row in rows.read_lines(score_row):
        try:
            collector.add(row, line)
        except BadRow as bad:
            rows.complain(line, str(bad))
    if len(collector.deployments) > MAX_DEPLOYMENTS:
        raise InputError(
            f"{path}: names {len(collector.deployments):,} deployments; at most {MAX_DEPLOYMENTS} are read"
        )
    return ScoreFile(table=collector.finish(), skipped=rows.skipped, complaints=tuple(rows.complaints))
