"""The tables of a comparison's page: rows of cells, each with the place where the document says it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from markupsafe import Markup

from auditor.metrics.estimate import BOUNDS_ONLY
from auditor.report.cells import (
    Cell,
    absent,
    bounded,
    choice,
    count,
    decimal,
    estimate,
    fraction,
    gain,
    number,
    share,
    word,
)
from auditor.report.places import Place
from auditor.report.tables import Row, Table, head, short, table
from auditor.report.words import Entry, percent, points
from replay.comparison.compare import COMPARED
from replay.comparison.effects import in_order
from replay.comparison.sides import STORED

_EXPOSURE: Final = (
    "score",
    "lowest",
    "highest",
    "range",
    Markup("range less<small>chance's part</small>"),
    Markup("asked again<small>moves it by up to</small>"),
    "beyond that",
    "statements",
    "flags",
)
_VERDICTS: Final = {"amplifying": "alarm", "layer-rerouting": "alarm", "co-reducing": "good"}
_CHANGES: Final = ("sel", "elab", "ir", "dni_before", "dni_after")


def side_names(group: Place) -> dict[str, str]:
    """Name a group's sides as people read them, the first one first."""
    return {side["side"]: _side_name(side) for side in group.value["sides"]}


def _side_name(side: Entry) -> str:
    # What stood in the traffic may be called as the stored answers are; they alone change nothing.
    if side["side"] != STORED or side["changes"]:
        return str(side["side"])
    return f"{side['task']} (stored)" if side["task"] else "own words (stored)"


def exposure_table(group: Place) -> Table | None:
    """Lay out how far each score can be moved, a line a score."""
    names = side_names(group)
    rows = [Row(name=head(name), cells=_exposure(group, name, names)) for name in COMPARED]
    return table("The lowest and the highest score that the same traffic gives", _EXPOSURE, rows)


def _exposure(group: Place, name: str, names: Mapping[str, str]) -> list[Cell]:
    found = group.at("exposure", name)
    return [
        *(_end(found.at(end), name, names) for end in ("lowest", "highest")),
        bounded(found.at("range"), gain),
        number(found.at("range", "corrected"), gain),
        number(found.at("repetition", "reach"), gain),
        choice(found.at("repetition", "beyond"), lambda beyond: "yes" if beyond else "not shown"),
        count(found.at("n_statements")),
        word(", ".join(str(flag.value) for flag in found.at("flags")).replace("_", " "), "flags"),
    ]


def _end(end: Place, measure: str, names: Mapping[str, str]) -> Cell:
    """Print one end of a range, under it the side that gave it."""
    if end.reason:
        return absent(end.reason)
    write = points if measure == "dni" else percent
    side = end.at("side")
    cell = bounded(end, write)
    if BOUNDS_ONLY in end.value["flags"]:
        cell = replace(cell, text=cell.under[0] + (" pp" if measure == "dni" else " %"), under=())
    return cell.above(Cell(text=names[side.value], path=side.path))


def score_table(group: Place) -> Table | None:
    """Lay out the scores of every side over the same exchanges."""
    names = side_names(group)
    rows = [
        Row(
            name=names[side.value["side"]],
            cells=[*(estimate(side.at("scores", name), name, sized=True) for name in COMPARED), _tokens(side)],
            kind="base" if side.at("repeats").value else "",
        )
        for side in group.at("sides")
    ]
    heads = ["asked", *map(head, COMPARED), Markup("completion<small>tokens</small>")]
    return table("Scores by way of asking, over the exchanges that were asked in every way", heads, rows)


def _tokens(side: Place) -> Cell:
    return decimal(side.at("tokens", "mean"), 1)


def coverage_table(group: Place) -> Table | None:
    """Lay out how much of each side could be read."""
    rows, names = [], side_names(group)
    for side in group.at("sides"):
        reasons = side.at("missing").value
        told = ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in sorted(reasons.items()))
        rows.append(
            Row(
                name=names[side.value["side"]],
                cells=[
                    count(side.at("n")),
                    *(share(side.at("coverage", part)) for part in ("eligible", "structural", "failed")),
                    share(side.at("selection_abstains")),
                    word(told, "flags"),
                ],
            )
        )
    heads = ["asked", "exchanges", "both layers coded", "absent by design", "failed", "selection abstains"]
    return table("How much could be read", [*heads, "not asked this way"], rows)


def factor_table(group: Place) -> Table | None:
    """Lay out what each factor explains of each score's variance."""
    shown = [name for name in COMPARED if name != "dni"]
    rows = [
        Row(
            name=factor,
            cells=[bounded(group.at("factors", factor, name), fraction) for name in shown],
        )
        for factor in in_order(group.at("factors").names())
    ]
    caption = "Share of the variance (η²) that a factor explains, over the ways that change it alone"
    return table(caption, ["factor", *map(head, shown)], rows)


def remedy_table(group: Place) -> Table | None:
    """Lay out what another role or task does to both layers, and what it costs."""
    rows = [
        Row(
            name=entry.value["side"],
            cells=[
                count(entry.at("n_statements")),
                *(bounded(entry.at("effect", name), points) for name in _CHANGES),
                _verdict(entry.at("published")),
                _verdict(entry.at("verdict")),
                decimal(entry.at("tokens", "first"), 1),
                decimal(entry.at("tokens", "second"), 1),
            ],
        )
        for entry in group.at("mitigation")
    ]
    heads: list[str | Markup] = ["asked", "statements", short("ber_sel"), short("ber_elab"), short("ir")]
    heads += ["DNI before", "DNI after", "by points", "by intervals", "tokens before", "tokens after"]
    caption = "What another task or role does to the answers coded on both layers, against the first way of asking"
    return table(caption, heads, rows, source="section VI")


def _verdict(place: Place) -> Cell:
    cell = choice(place)
    return cell.marked(_VERDICTS[cell.text]) if cell.text in _VERDICTS else cell
