"""What the swaps of a replay change, written to a file of the user's: clients' words go nowhere else."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from auditor.domain.exchange import Origin
from auditor.errors import UsageError
from replay.counterfactual import Refused
from replay.plan import Begun
from replay.rewriting.calls import read_object
from replay.rewriting.own_request import put_otherwise, reason_of
from replay.rewriting.request import Rewritten


def write_edits(begun: Begun, path: Path) -> None:
    """Write one line for each client's request and swap: every edit, or why there is none.

    Parameters
    ----------
    begun
        The replay; nothing of it needs to be sent.
    path
        The file, which is written anew. A line has ``parent``, ``format``, and ``edits`` (each with ``part``, the
        number of the text among those of the messages, ``start`` and ``end`` in its characters, ``old``, ``new``,
        ``rule``) or ``refused`` with ``what``, the words that stood in the way.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in _rows(begun))
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _rows(begun: Begun) -> Iterator[dict[str, Any]]:
    swaps = [each for each in begun.order.formats if each.swap]
    clients = (parent for parent in begun.parents.values() if parent.origin is Origin.CLIENT)
    for parent in clients:
        request = read_object(begun.requests.get(parent.id))
        for each in swaps:
            outcome = put_otherwise(parent, each, request, begun.means)
            row: dict[str, Any] = {"parent": str(parent.id), "format": each.key}
            if isinstance(outcome, Rewritten):
                yield row | {"edits": [asdict(edit) for edit in outcome.edits]}
            else:
                yield row | {
                    "refused": reason_of(outcome),
                    "what": outcome.what if isinstance(outcome, Refused) else "",
                }
