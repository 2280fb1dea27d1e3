"""The tables of a comparison's page: rows of cells, each with the place where the document says it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

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
    probability,
    share,
    word,
)
from auditor.report.places import Place
from auditor.report.tables import Row, Table, head, short, table
from auditor.report.words import MINUS, points, signed
from replay.compare import COMPARED
from replay.effects import in_order
from replay.sides import STORED
from replay.together import ERROR

_LAYERS: Final = ("selection", "elaboration")
_VERDICTS: Final = {"amplifying": "alarm", "layer-rerouting": "alarm", "co-reducing": "good"}
_CHANGES: Final = ("sel", "elab", "ir", "dni_before", "dni_after")


def side_text(side: Place) -> str:
    """Name a side as people read it."""
    name, task = side.at("side").value, side.at("task")
    if name != STORED:
        return str(name)
    return f"{task.value} (stored)" if task.value else "own words (stored)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """Some of a group's pairs, in which anything was answered."""

    pairs: Sequence[Place]
    repeats: Collection[str]  #: sides that asked the same again
    #: The side that all of them start from, as people read it; empty where they start from several.
    start: str = ""

    @property
    def heading(self) -> str:
        """Head the column of names."""
        return f"{self.start} →" if self.start else "from → to"

    def named(self) -> Iterator[tuple[str, Place]]:
        """Give each pair with its name: where all start from one side, that of the other."""
        for pair in self.pairs:
            second = side_text(pair.at("second"))
            yield second if self.start else f"{side_text(pair.at('first'))} → {second}", pair

    def kind(self, pair: Place) -> str:
        """Set repetitions apart."""
        return "base" if pair.value["second"]["side"] in self.repeats else ""


def halves(group: Place) -> tuple[Pairs, Pairs]:
    """Part the pairs with the group's first side from all others."""
    first, *rest = group.at("sides")
    answered = [pair for pair in group.at("pairs") if pair.value["n_pairs"]]
    own = [pair for pair in answered if pair.value["first"]["side"] == first.value["side"]]
    repeats = [side.value["side"] for side in rest if side.value["repeats"]]
    return (
        Pairs(pairs=own, repeats=repeats, start=side_text(first)),
        Pairs(pairs=answered[len(own) :], repeats=repeats),
    )


def exposure_table(group: Place) -> Table | None:
    """Lay out how far each score can be moved, a line a measure."""
    names = {side.at("side").value: side_text(side) for side in group.at("sides")}
    rows = []
    for name in COMPARED:
        found = group.at("exposure", name)
        ends = [_end(found.at(end), names, name) for end in ("lowest", "highest")]
        flags = word(", ".join(str(flag.value) for flag in found.at("flags")).replace("_", " "), "flags")
        rows.append(
            Row(
                name=head(name),
                cells=[
                    *ends,
                    bounded(found.at("range"), gain),
                    number_of(found, "range", "corrected"),
                    _reach(found),
                    _beyond(found),
                    count(found.at("n_statements")),
                    flags,
                ],
            )
        )
    heads = [
        "score",
        "lowest",
        "highest",
        "range",
        Markup("range less<small>chance's part</small>"),
        Markup("asked again<small>moves it by up to</small>"),
        "beyond that",
        "statements",
        "flags",
    ]
    return table("The lowest and the highest score that the same traffic gives", heads, rows)


def number_of(found: Place, *keys: str) -> Cell:
    """Print a difference that is never negative."""
    place = found.at(*keys)
    return absent(place.reason) if place.reason else Cell(text=gain(place.value), path=place.path)


def _end(end: Place, names: dict[str, str], measure: str) -> Cell:
    """Print one end of a range, under it the side that gave it."""
    cell = bounded(end, points if measure == "dni" else _rate)
    if cell.reason:
        return cell
    return cell.above(Cell(text=names[end.at("side").value], path=end.at("side").path))


def _rate(value: float) -> str:
    return f"{100 * value:.1f} %"


def _reach(found: Place) -> Cell:
    return number_of(found, "repetition", "reach")


def _beyond(found: Place) -> Cell:
    place = found.at("repetition", "beyond")
    if place.reason:
        return absent(place.reason)
    return Cell(text="yes" if place.value else "not shown", path=place.path, kind="word")


def score_table(group: Place) -> Table | None:
    """Lay out the scores of every side over the same exchanges."""
    rows = [
        Row(
            name=side_text(side),
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
    rows = []
    for side in group.at("sides"):
        reasons = side.at("missing").value
        told = ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in sorted(reasons.items()))
        rows.append(
            Row(
                name=side_text(side),
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


def pair_table(pairs: Pairs, caption: str) -> Table | None:
    """Lay out the differences of pairs of sides; bold is what holds beside all other comparisons of the group."""
    rows = [
        Row(
            name=name,
            cells=[
                count(pair.at("n_pairs")),
                *(_change(pair.at("metrics", measure)) for measure in COMPARED),
                difference(pair.at("coverage")),
            ],
            kind=pairs.kind(pair),
        )
        for name, pair in pairs.named()
    ]
    return table(caption, [pairs.heading, "pairs", *map(head, COMPARED), "coverage"], rows)


def difference(place: Place) -> Cell:
    """Print a mean difference of pairs; where only its bounds may be claimed, these alone."""
    if place.reason:
        return absent(place.reason)
    entry = place.value
    bounds = f"[{signed(entry['low'])}, {signed(entry['high'])}]"
    told = f"{entry['n_pairs']:,} pairs, {entry['n_statements']:,} statements, {entry['method'].replace('_', ' ')}"
    if "bounds_only" in entry["flags"]:
        return Cell(text=f"{bounds} pp", path=place.path, told=told, kind="num estimate")
    return Cell(text=points(entry["difference"]), under=(bounds,), path=place.path, told=told, kind="num estimate")


def _change(place: Place) -> Cell:
    cell = difference(place)
    if cell.reason:
        return cell
    return cell.marked("largest") if place.at("p_adjusted").value <= ERROR else cell


def test_table(pairs: Pairs) -> Table | None:
    """Lay out the tests and sizes behind the differences."""
    rows = [
        Row(name=name, cells=[_test(pair.at("metrics", measure)) for measure in COMPARED])
        for name, pair in pairs.named()
    ]
    caption = "p adjusted for all comparisons of the group; Cohen's h; McNemar's discordant pairs and p"
    return table(caption, [pairs.heading, *map(head, COMPARED)], rows)


def _test(place: Place) -> Cell:
    if place.reason:
        return absent(place.reason)
    cell = probability(place.at("p_adjusted"))
    if "mcnemar" not in place.value:
        return cell
    tested = place.at("mcnemar")
    counts = Cell(text=f"+{tested.value['gained']:,} {MINUS}{tested.value['lost']:,}", path=tested.path)
    return cell.above(decimal(place.at("cohen_h"), 2), "h {}").above(counts).above(probability(tested.at("p")), "p {}")


def flip_table(pairs: Pairs, caption: str) -> Table | None:
    """Lay out how often labels turned over, and in which direction endorsement moved."""
    rows = []
    for name, pair in pairs.named():
        cells: list[Cell] = []
        for layer in _LAYERS:
            found = pair.at("flips", layer)
            cells += [estimate(found.at("changed"), "ir", sized=True), difference(found.at("effect"))]
        rows.append(Row(name=name, cells=cells, kind=pairs.kind(pair)))
    heads = [pairs.heading]
    for layer in _LAYERS:
        heads += [f"{layer}: label changed", f"{layer}: endorses more (D)"]
    return table(caption, heads, rows)


def remedy_table(group: Place) -> Table | None:
    """Lay out what another role or task does to both layers, and what it costs."""
    rows = [
        Row(
            name=side_text(entry),
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
    caption = "What another task or role does to the answers coded on both layers, against the stored ones"
    return table(caption, heads, rows, source="section VI")


def _verdict(place: Place) -> Cell:
    cell = choice(place)
    return cell.marked(_VERDICTS[cell.text]) if cell.text in _VERDICTS else cell
