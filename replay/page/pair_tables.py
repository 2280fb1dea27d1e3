"""The tables of a comparison's page that have a line for each pair of sides."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from auditor.report.cells import Cell, absent, count, decimal, estimate, probability
from auditor.report.places import Place
from auditor.report.tables import Row, Table, head, table
from auditor.report.words import MINUS, points, signed
from replay.comparison.compare import COMPARED
from replay.comparison.together import ERROR
from replay.page.tables import side_names

_LAYERS: Final = ("selection", "elaboration")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """Some of a group's pairs, in which anything was answered."""

    pairs: Sequence[Place]
    names: Mapping[str, str]  #: of sides, as people read them
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
            first, second = (self.names[pair.value[end]] for end in ("first", "second"))
            yield second if self.start else f"{first} → {second}", pair

    def kind(self, pair: Place) -> str:
        """Set repetitions apart."""
        return "base" if pair.value["second"] in self.repeats else ""


def halves(group: Place) -> tuple[Pairs, Pairs]:
    """Part the pairs with the group's first side from all others."""
    names = side_names(group)
    start = next(iter(names))
    answered = [pair for pair in group.at("pairs") if pair.value["n_pairs"]]
    own = [pair for pair in answered if pair.value["first"] == start]
    repeats = [side["side"] for side in group.value["sides"] if side["repeats"]]
    return (
        Pairs(pairs=own, names=names, repeats=repeats, start=names[start]),
        Pairs(pairs=answered[len(own) :], names=names, repeats=repeats),
    )


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
