"""Exposure: how far the same questions could be moved, as the replays came to it that were concluded in the period."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from markupsafe import Markup

from auditor.metrics.estimate import BOUNDS_ONLY
from auditor.report.cells import Cell, bounded, choice, count, gain, number, word
from auditor.report.part import Section
from auditor.report.places import Place
from auditor.report.tables import Row, Table, head, table
from auditor.report.words import percent, points

#: Measures that the page shows; the others are in report.json.
_SHOWN: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
_AGAIN: Final = Markup("asked again<small>moves it by up to</small>")
_HEADS: Final = ("measure", "lowest [95 %]", "highest [95 %]", "range [95 %]", _AGAIN, "statements", "flags")
_ORIGINS: Final = {"probe": "probes", "client": "client traffic"}


def section(document: Place) -> Section | None:
    """Show the ends and the range of each measure, group by group; a file of rows has no replays."""
    replays = document.at("exposures")
    if replays.reason:
        return None
    return Section(
        name="exposures", title="Exposure: asked in other ways", given={"replays": [_replay(one) for one in replays]}
    )


def _replay(replay: Place) -> dict[str, Any]:
    return {
        "name": choice(replay.at("replay")),
        "select": choice(replay.at("select"), lambda select: select or "all"),
        "at": choice(replay.at("concluded_at"), lambda at: at[:16].replace("T", " ")),
        "tables": [made for group in replay.at("groups") if (made := _table(group)) is not None],
    }


def _table(group: Place) -> Table | None:
    return table(_group_text(group), _HEADS, _rows(group))


def _group_text(group: Place) -> str:
    by = group.value["by"]
    parts = [f"{by['deployment']}, {_ORIGINS[by['origin']]}"]
    parts += [f"of {by['route']}"] if by["route"] else []
    parts += [f"first asked as {by['task']}"] if by["task"] else []
    rubric = group.value["rubric"]
    return " ".join(parts) + ("" if rubric == "statement" else f" ({rubric})")


def _rows(group: Place) -> Iterator[Row]:
    for metric in _SHOWN:
        found = group.at("exposure", metric)
        write = points if metric == "dni" else percent
        ends = [_end(found, end, write) for end in ("lowest", "highest")]
        cells = [*ends, bounded(found.at("range"), gain), number(found.at("repetition", "reach"), gain)]
        flags = ", ".join(str(flag.value) for flag in found.at("flags")).replace("_", " ")
        yield Row(name=head(metric), cells=[*cells, count(found.at("n_statements")), word(flags, "flags")])


def _end(found: Place, name: str, write: Callable[[float], str]) -> Cell:
    """Print one end and the side that gave it; no value where only bounds may be claimed."""
    end = found.at(name)
    cell = bounded(end, write)
    if not cell.reason and BOUNDS_ONLY in end.value["flags"]:
        low, high = (write(end.value[bound]) for bound in ("low", "high"))
        cell = replace(cell, text=f"{low} to {high}", under=())
    return cell.above(choice(end.at("side")))
