"""Make the tables with one row per pair of arms."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UnsetType

from auditor.documents.base import Missing
from auditor.documents.comparison import ArmPairEntry, ChangeEntry, ComparisonGroupEntry, PairedDifferenceEntry
from auditor.metrics.estimate import BOUNDS_ONLY
from auditor.report.document import pointer_of
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    count,
    decimal,
    estimate_cell,
    metric_head,
    no_value,
    probability,
    table,
)
from auditor.report.wording import MINUS, as_words, points, signed
from replay.comparison.pairs import COMPARED, ERROR
from replay.page.arms import side_names


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRows:
    """The pairs of a group that have answers."""

    pairs: Sequence[ArmPairEntry]
    names: Mapping[str, str]  #: display names of the arms
    repeats: Collection[str]  #: arms that repeat the same questions
    #: The display name of the common first arm; empty if the pairs have different first arms.
    start: str = ""

    @property
    def heading(self) -> str:
        """Return the heading of the column of names."""
        return f"{self.start} →" if self.start else "from → to"

    def named(self) -> Iterator[tuple[str, ArmPairEntry]]:
        """Return each pair with its name; with a common first arm this is the name of the other arm."""
        for pair in self.pairs:
            first, second = self.names[pair.first], self.names[pair.second]
            yield second if self.start else f"{first} → {second}", pair

    def kind(self, pair: ArmPairEntry) -> str:
        """Return the kind of a pair, which distinguishes repetitions."""
        return "base" if pair.second in self.repeats else ""


def split_pairs(group: ComparisonGroupEntry) -> tuple[PairRows, PairRows]:
    """Separate the pairs that contain the group's first arm from all others."""
    names = side_names(group)
    start = next(iter(names))
    answered = [pair for pair in group.pairs if pair.n_pairs]
    from_start = [pair for pair in answered if pair.first == start]
    repeats = [side.side for side in group.sides if side.repeats]
    return (
        PairRows(pairs=from_start, names=names, repeats=repeats, start=names[start]),
        PairRows(pairs=answered[len(from_start) :], names=names, repeats=repeats),
    )


def pair_table(pairs: PairRows, caption: str) -> ReportTable | None:
    """Make the table of differences. Bold: significant also after adjustment for all comparisons."""
    rows = [
        TableRow(
            name=name,
            cells=[
                count(pair.n_pairs),
                *(_change(pair.metrics[measure]) for measure in COMPARED),
                _difference(pair.coverage),
            ],
            kind=pairs.kind(pair),
        )
        for name, pair in pairs.named()
    ]
    return table(caption, [pairs.heading, "pairs", *map(metric_head, COMPARED), "coverage"], rows)


def difference_parts(entry: PairedDifferenceEntry) -> list[str]:
    """Write a mean difference of pairs and its interval; only its bounds if no more may be claimed."""
    bounds = f"[{signed(entry.low)}, {signed(entry.high)}]"
    return [f"{bounds} pp"] if BOUNDS_ONLY in entry.flags else [points(entry.difference), bounds]


def _difference(entry: PairedDifferenceEntry | Missing) -> TableCell:
    if isinstance(entry, Missing):
        return no_value(entry.missing)
    hint = f"{entry.n_pairs:,} pairs, {entry.n_statements:,} statements, {as_words(entry.method)}"
    first, *under = difference_parts(entry)
    return TableCell(text=first, under=tuple(under), path=pointer_of(entry), hint=hint, kind="num estimate")


def _change(entry: ChangeEntry | Missing) -> TableCell:
    is_shown = isinstance(entry, ChangeEntry) and entry.p_adjusted <= ERROR
    return _difference(entry).marked("largest") if is_shown else _difference(entry)


def test_table(pairs: PairRows) -> ReportTable | None:
    """Make the table of the tests and effect sizes of the differences."""
    rows = [
        TableRow(name=name, cells=[_test(pair.metrics[measure]) for measure in COMPARED])
        for name, pair in pairs.named()
    ]
    caption = "p adjusted for all comparisons of the group; Cohen's h; McNemar's discordant pairs and p"
    return table(caption, [pairs.heading, *map(metric_head, COMPARED)], rows)


def _test(entry: ChangeEntry | Missing) -> TableCell:
    if isinstance(entry, Missing):
        return no_value(entry.missing)
    cell, tested = probability(entry.p_adjusted), entry.mcnemar
    if isinstance(tested, UnsetType) or isinstance(entry.cohen_h, UnsetType):
        return cell
    counts = TableCell(text=f"+{tested.gained:,} {MINUS}{tested.lost:,}", path=pointer_of(tested))
    return cell.above(decimal(entry.cohen_h, 2), "h {}").above(counts).above(probability(tested.p), "p {}")


def flip_table(pairs: PairRows, caption: str) -> ReportTable | None:
    """Make the table of label changes and of the direction in which endorsement changed."""
    rows = []
    for name, pair in pairs.named():
        cells: list[TableCell] = []
        for layer_flips in (pair.flips.selection, pair.flips.elaboration):
            cells += [estimate_cell(layer_flips.changed, "ir", sized=True), _difference(layer_flips.effect)]
        rows.append(TableRow(name=name, cells=cells, kind=pairs.kind(pair)))
    heads = [pairs.heading]
    for layer in ("selection", "elaboration"):
        heads += [f"{layer}: label changed", f"{layer}: endorses more (D)"]
    return table(caption, heads, rows)
