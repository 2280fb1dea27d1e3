"""Tallies straight from rows, for tests of what is computed from them."""

from collections.abc import Iterable, Mapping

from auditor.counting.files import RowCounter
from auditor.counting.rows import CodedRow, Vote
from auditor.counting.tallies import Tallies


def tallied(rows: Iterable[Mapping[str, object]]) -> Tallies:
    """Count rows given as their fields; what a row does not say is ``m1``, ``BJ``, ``D`` and ``D``.

    ``votes`` are labels, of judges j1, j2, ... in this order.
    """
    counter = RowCounter(examples=True)
    for number, fields in enumerate(rows):
        given = {"id": number, "deployment": "m1", "task": "BJ", "sel": "D", "elab": "D"} | dict(fields)
        if "votes" in given:
            given["votes"] = tuple(Vote(f"j{seat}", label) for seat, label in enumerate(given["votes"], start=1))
        counter.add(CodedRow(**given), number)
    return counter.finish()
