"""Write what the swaps of a replay change in clients' requests."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from auditor.domain.exchange import Origin
from auditor.errors import UsageError
from replay.calls import block_reason, read_object, rewrite_client_request
from replay.counterfactual.edits import RefusedSwap
from replay.plan import PreparedReplay
from replay.rewriting import RewrittenRequest


def write_edits(prepared: PreparedReplay, path: Path) -> None:
    """Write one line for each client's request and swap: every edit, or why there is none.

    Parameters
    ----------
    prepared
        The replay; none of its calls needs to have been sent.
    path
        The file; it is overwritten. A line has ``parent``, ``format``, and ``edits`` (each with ``part``, the
        number of the text among those of the messages, ``start`` and ``end`` in its characters, ``old``, ``new``,
        ``rule``) or ``refused`` with ``what``, the words that prevent the swap.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in _rows(prepared))
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _rows(prepared: PreparedReplay) -> Iterator[dict[str, Any]]:
    swaps = [each for each in prepared.spec.formats if each.swap]
    clients = (parent for parent in prepared.parents.values() if parent.origin is Origin.CLIENT)
    for parent in clients:
        request = read_object(prepared.requests.get(parent.id))
        for each in swaps:
            outcome = rewrite_client_request(parent, each, request, prepared.context)
            row: dict[str, Any] = {"parent": str(parent.id), "format": each.key}
            if isinstance(outcome, RewrittenRequest):
                yield row | {"edits": [asdict(edit) for edit in outcome.edits]}
            else:
                yield row | {
                    "refused": block_reason(outcome),
                    "what": outcome.what if isinstance(outcome, RefusedSwap) else "",
                }
