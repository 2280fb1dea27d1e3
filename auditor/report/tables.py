"""Print values of a document as cells and tables.

A cell with a number is made from a value that knows its place, so a page cannot print a number that its document lacks.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

from markupsafe import Markup, escape
from msgspec import UnsetType

from auditor.documents.agreement import AlphaEntry, ReviewKappaEntry
from auditor.documents.base import Interval, Missing
from auditor.documents.comparison import FactorShareEntry, ScoreRangeEntry
from auditor.documents.conditions import LevelRange, SelectionTestEntry
from auditor.documents.differences import DeploymentDifferenceEntry
from auditor.documents.estimates import BoundedEntry, EstimateEntry, Metrics, RowsEntry
from auditor.documents.model import CoefficientEntry, MarginalEntry
from auditor.documents.peers import PairedTestEntry
from auditor.metrics.rates import METRICS
from auditor.report.document import NOT_THERE, pointer_of
from auditor.report.wording import DASH, as_words, estimate_parts, percent, points, signed

#: Smaller p values are printed as "< 0.001".
SMALL_P: Final = 0.001
#: Reasons for dashes that are printed under a table; the others are shown on hover.
MAX_REASONS: Final = 4
#: Columns that a page holds when printed: upright, and across in type of the same size.
MAX_UPRIGHT: Final = 12
MAX_ACROSS: Final = 17
#: Rows of a table that is not broken over two pages.
MAX_WHOLE: Final = 14
#: The heads of what ``sizes`` prints.
SIZE_HEADS: Final = (Markup("responses"), Markup("coded on<small>both layers</small>"))
#: A reason in three parts; the one in the middle is a number of statements, where it names one.
_COUNTED: Final = re.compile(r"(?:(.*?)\b(\d+)(?= statements))?(.*)", re.DOTALL)
_BASES: Final = {
    "ber_sel_full": "with a selection",
    "ber_elab_full": "with an elaboration",
    "ber_union_full": "all responses",
}
#: What has a value and an interval.
Bounded = (
    BoundedEntry
    | LevelRange
    | SelectionTestEntry
    | PairedTestEntry
    | ReviewKappaEntry
    | AlphaEntry
    | FactorShareEntry
    | ScoreRangeEntry
    | DeploymentDifferenceEntry
    | MarginalEntry
    | CoefficientEntry
)
_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class TableCell:
    """Text for one cell of a table, or for a place within a sentence."""

    text: str
    under: tuple[str, ...] = ()  #: further lines: an interval, a base
    path: str = ""  #: JSON pointers of what it prints, separated by spaces
    hint: str = ""  #: its base, shown on hover
    reason: str = ""  #: why there is no value
    kind: str = "num"  #: class of the style sheet

    @property
    def is_text(self) -> bool:
        """Whether the cell holds words."""
        return not self.kind.startswith("num")

    def marked(self, kind: str) -> Self:
        """Return the cell with one more style class."""
        return replace(self, kind=f"{self.kind} {kind}")

    def above(self, line: "TableCell", form: str = "{}") -> Self:
        """Return the cell with another cell's text under its own, unless one of them has no value."""
        if self.reason or line.reason:
            return self
        return replace(self, under=(*self.under, form.format(line.text)), path=f"{self.path} {line.path}")


def word_cell(text: str, kind: str = "word") -> TableCell:
    """Print a word: a verdict, a level's name."""
    return TableCell(text=text, kind=kind)


def no_value(reason: str) -> TableCell:
    """Print a dash with the reason."""
    return TableCell(text=DASH, hint=reason, reason=reason, kind="num absent")


def number(value: _Value | Missing, write: Callable[[_Value], str]) -> TableCell:
    """Print a number of the document in the given way.

    Examples
    --------
    >>> number(Missing(missing="12 statements"), percent).reason
    '12 statements'
    """
    if isinstance(value, Missing):
        return no_value(value.missing)
    return TableCell(text=write(value), path=pointer_of(value))


def count(value: int | Missing) -> TableCell:
    """Print a number of things."""
    return number(value, "{:,}".format)


def share(value: float | Missing) -> TableCell:
    """Print a share as percent."""
    return number(value, percent)


def decimal(value: float | Missing, digits: int = 3) -> TableCell:
    """Print a number with a fixed number of decimals, with a true minus."""
    return number(value, lambda known: _decimal(known, digits))


def probability(value: float | Missing) -> TableCell:
    """Print a p value."""
    return number(value, lambda known: f"< {SMALL_P}" if known < SMALL_P else f"{known:.3f}")


def low_high(value: Interval | Missing, write: Callable[[float], str]) -> TableCell:
    """Print a pair [low, high]."""
    return number(value, lambda ends: _bounds(*ends, write))


def text_cell(value: _Value | Missing, write: Callable[[_Value], str] = str) -> TableCell:
    """Print a word of the document, or the text that replaces it."""
    cell = number(value, write)
    return cell if cell.reason else replace(cell, kind="word")


def estimate_cell(entry: EstimateEntry | Missing, name: str, *, sized: bool = False) -> TableCell:
    """Print an estimate of the measure ``name``: its value, its interval and, where ``sized``, how many it rests on."""
    if isinstance(entry, Missing):
        return no_value(entry.missing)
    value, interval = estimate_parts(name, entry)
    hint = f"n = {entry.n:,}, {entry.n_statements:,} statements, {as_words(entry.method)}"
    if not isinstance(entry.n_effective, UnsetType):
        hint += f"; weighted, {entry.n_effective:,.0f} effective answers"
    if not isinstance(entry.n_labelled, UnsetType):
        hint += f"; {entry.n_labelled:,} labelled, power {entry.power:.2f}"
    first, *under = filter(None, [value, interval, f"n = {entry.n:,}" if sized else ""])
    return TableCell(text=first, under=tuple(under), path=pointer_of(entry), hint=hint, kind="num estimate")


def average(entry: EstimateEntry | Missing, name: str) -> TableCell:
    """Print an unweighted mean of deployments, without a number of responses, which does not apply to it."""
    cell = estimate_cell(entry, name)
    return cell if cell.reason else replace(cell, hint="each deployment has the same weight")


def bounded(entry: Bounded | Missing, write: Callable[[float], str]) -> TableCell:
    """Print a value with its interval."""
    match entry:
        case Missing():
            return no_value(entry.missing)
        case LevelRange():
            value = entry.range
        case SelectionTestEntry():
            value = entry.difference
        case PairedTestEntry():
            value = entry.diff
        case _:
            value = entry.value
    under = (_bounds(entry.low, entry.high, write),)
    return TableCell(text=write(value), under=under, path=pointer_of(entry), kind="num estimate")


def unsigned_points(value: float) -> str:
    """Write a difference that is never negative, in percentage points.

    >>> unsigned_points(0.404)
    '40.4 pp'
    """
    return points(value).removeprefix("+")


def three_decimals(value: float) -> str:
    """Write a number with three decimals.

    >>> three_decimals(0.0419)
    '0.042'
    """
    return _decimal(value, 3)


def _decimal(value: float, digits: int) -> str:
    return signed(value / 100, digits).removeprefix("+")


def _bounds(low: float, high: float, write: Callable[[float], str]) -> str:
    """Write an interval without its unit."""
    return f"[{', '.join(write(end).removesuffix(' %').removesuffix(' pp') for end in (low, high))}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One row: its name and its cells."""

    name: str
    cells: Sequence[TableCell]
    kind: str = ""  #: class of the style sheet


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportTable:
    """A table with its caption; ``heads`` begins with that of the names."""

    caption: str
    heads: Sequence[str | Markup]
    rows: Sequence[TableRow]
    source: str = ""  #: which table of the paper it corresponds to

    @property
    def kind(self) -> str:
        """Style classes of the table, which set how it is printed."""
        width = "across small" if len(self.heads) > MAX_ACROSS else "across" if len(self.heads) > MAX_UPRIGHT else ""
        return f"table {width}{' whole' if len(self.rows) <= MAX_WHOLE else ''}"

    @property
    def text_columns(self) -> list[bool]:
        """Whether each column holds words, which are aligned left."""
        columns = zip(*(row.cells for row in self.rows), strict=True)
        return [
            any(cell.is_text and cell.text for cell in column) and all(cell.is_text or cell.reason for cell in column)
            for column in columns
        ]

    @property
    def reasons(self) -> list[str]:
        """The reasons for dashes, each once; reasons that differ only in a number of statements are merged.

        Examples
        --------
        >>> cells = [TableCell(text="", reason=f"{n} statements, 15 needed") for n in (12, 9, 12)]
        >>> ReportTable(caption="", heads=[], rows=[TableRow(name="", cells=cells)]).reasons
        ['9 to 12 statements, 15 needed']
        """
        numbers: dict[tuple[str, str], set[int]] = {}
        for reason in (cell.reason for row in self.rows for cell in row.cells if cell.reason):
            before, number, after = _COUNTED.fullmatch(reason).groups()  # type: ignore[union-attr] # it matches any text
            numbers.setdefault((before or "", after), set()).update([int(number)] if number else [])
        return [f"{before}{_span(counts)}{after}" for (before, after), counts in numbers.items()][:MAX_REASONS]


def _span(numbers: Collection[int]) -> str:
    return " to ".join(str(end) for end in sorted({min(numbers), max(numbers)})) if numbers else ""


def table(caption: str, heads: Sequence[str], rows: Iterable[TableRow], *, source: str = "") -> ReportTable | None:
    """Make a table; None if it has no rows.

    Raises
    ------
    ValueError
        A row has more or fewer cells than there are heads for.
    """
    made = [row for row in rows if row.cells]
    for row in made:
        if len(row.cells) != len(heads) - 1:
            raise ValueError(f"{caption}: {len(row.cells)} cells under {len(heads) - 1} heads")
    return ReportTable(caption=caption, heads=heads, rows=made, source=source) if made else None


def short_name(name: str) -> Markup:
    """Return the label of a measure, what follows an underscore as a subscript."""
    word, _, subscript = METRICS[name].label.partition("_")
    return Markup("{}<sub>{}</sub>").format(word, subscript) if subscript else escape(word)


def metric_head(name: str) -> Markup:
    """Return a column heading: a measure's short name and its base."""
    base = _BASES.get(name, "both layers" if METRICS[name].base == "eligible" else "")
    return Markup("{}<small>{}</small>").format(short_name(name), base)


def estimate_cells(metrics: Metrics, names: Iterable[str], *, sized: bool = False) -> list[TableCell]:
    """Print some measures of an entry."""
    return [estimate_cell(metrics.get(name, NOT_THERE), name, sized=sized) for name in names]


def size_cells(entry: RowsEntry) -> list[TableCell]:
    """Print the number of responses of an entry, and the share of them that is coded on both layers."""
    return [count(entry.n), share(entry.coverage.eligible)]
