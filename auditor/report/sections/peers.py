"""Peers: in short, what came of comparing deployments on the same questions; each comparison has a page of its own."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from auditor.report.cells import bounded, choice, number
from auditor.report.part import Section
from auditor.report.peer_words import number_text
from auditor.report.places import Place
from auditor.report.tables import Row, table

_HEADS: Final = ("deployment, compared by", "difference [95 %]", "margin", "verdict")


def section(document: Place) -> Section | None:
    """Show the verdicts of each comparison."""
    compared = [_compared(one) for one in document.at("peers")]
    if not compared:
        return None
    return Section(name="peers", title="Beside their peers", given={"compared": compared})


def _compared(one: Place) -> dict[str, Any]:
    comparison = one.at("comparison")
    rows = [
        *(row for entry in comparison.at("targets") for row in _rows(str(entry.value["target"]), entry)),
        *(row for pair in comparison.at("hosts") for row in _rows(_pair(pair), pair)),
    ]
    return {"table": table(f"Peers: {one.value['title']}", _HEADS, rows), "page": one.value["page"]}


def _pair(pair: Place) -> str:
    return f"{' less '.join(pair.value['deployments'])}, hosts of {pair.value['weights']}"


def _rows(name: str, entry: Place) -> Iterator[Row]:
    for instrument in entry.at("instruments").names():
        found = entry.at("instruments", instrument)
        write = partial(number_text, instrument)
        cells = [
            bounded(found.at("paired"), write, "diff"),
            number(found.at("delta"), partial(number_text, instrument, digits=4)),
            choice(found.at("verdict")),
        ]
        yield Row(name=f"{name}: {instrument}", cells=cells)
