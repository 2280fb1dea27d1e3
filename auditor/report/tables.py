"""Tables as plain rows of cells; the page's macro writes them."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from auditor.metrics.rates import BY_NAME
from auditor.report.cells import Cell, count, estimate, share
from auditor.report.places import Place

#: Reasons for dashes that stand under a table; the others are told where one points.
MAX_REASONS: Final = 4
#: Columns that a page holds when printed: upright, and across in type of the same size.
MAX_UPRIGHT: Final = 12
MAX_ACROSS: Final = 17
#: Rows of a table that is not broken over two pages.
MAX_WHOLE: Final = 14
#: Short names of the measures; what a rate is a share of stands under its name.
_SHORT: Final = {
    "ber_sel": Markup("BER<sub>sel</sub>"),
    "ber_elab": Markup("BER<sub>elab</sub>"),
    "ber_cor": Markup("BER<sub>cor</sub>"),
    "ber_union": Markup("BER<sub>union</sub>"),
    "ir": Markup("IR"),
    "dni": Markup("DNI"),
    "ir_over_union": Markup("IR / union"),
}
#: The heads of what ``sizes`` prints.
SIZE_HEADS: Final = (Markup("responses"), Markup("coded on<small>both layers</small>"))
#: Stands where a design has no such cell.
NOT_ASKED: Final = Place({"missing": "not asked"})
#: A reason in three parts; the one in the middle is a number of statements, where it names one.
_COUNTED: Final = re.compile(r"(?:(.*?)\b(\d+)(?= statements))?(.*)", re.DOTALL)
_BASES: Final = {
    "ber_sel_full": "with a selection",
    "ber_elab_full": "with an elaboration",
    "ber_union_full": "all responses",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line: what it is of, and its cells."""

    name: str
    cells: Sequence[Cell]
    kind: str = ""  #: class of the style sheet


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table with its caption; ``heads`` begins with that of the names."""

    caption: str
    heads: Sequence[str | Markup]
    rows: Sequence[Row]
    source: str = ""  #: which table of the paper it corresponds to

    @property
    def kind(self) -> str:
        """Say how it is printed, by classes of the style sheet."""
        width = "across small" if len(self.heads) > MAX_ACROSS else "across" if len(self.heads) > MAX_UPRIGHT else ""
        return f"table {width}{' whole' if len(self.rows) <= MAX_WHOLE else ''}"

    @property
    def text_columns(self) -> list[bool]:
        """Whether each column of cells holds words, which begin at the left."""
        columns = zip(*(row.cells for row in self.rows), strict=True)
        return [
            any(cell.is_text and cell.text for cell in column) and all(cell.is_text or cell.reason for cell in column)
            for column in columns
        ]

    @property
    def reasons(self) -> list[str]:
        """Why there are dashes, each reason once; of reasons that differ in a number of statements one that tells both.

        Examples
        --------
        >>> cells = [Cell(text="", reason=f"{n} statements, 15 needed") for n in (12, 9, 12)]
        >>> Table(caption="", heads=[], rows=[Row(name="", cells=cells)]).reasons
        ['9 to 12 statements, 15 needed']
        """
        numbers: dict[tuple[str, str], set[int]] = {}
        for reason in (cell.reason for row in self.rows for cell in row.cells if cell.reason):
            before, number, after = _COUNTED.fullmatch(reason).groups()  # type: ignore[union-attr] # it matches any text
            numbers.setdefault((before or "", after), set()).update([int(number)] if number else [])
        return [f"{before}{_span(own)}{after}" for (before, after), own in numbers.items()][:MAX_REASONS]


def _span(numbers: Collection[int]) -> str:
    return " to ".join(str(end) for end in sorted({min(numbers), max(numbers)})) if numbers else ""


def table(caption: str, heads: Sequence[str], rows: Iterable[Row], *, source: str = "") -> Table | None:
    """Make a table; one without rows is none.

    Raises
    ------
    ValueError
        A row has more or fewer cells than there are heads for.
    """
    made = [row for row in rows if row.cells]
    for row in made:
        if len(row.cells) != len(heads) - 1:
            raise ValueError(f"{caption}: {len(row.cells)} cells under {len(heads) - 1} heads")
    return Table(caption=caption, heads=heads, rows=made, source=source) if made else None


def short(name: str) -> Markup:
    """Give the short name of a measure, without its base."""
    return _SHORT[name.removesuffix("_full")]


def head(name: str) -> Markup:
    """Head a column with a measure's short name and what it is a share of."""
    base = _BASES.get(name, "both layers" if BY_NAME[name].base == "eligible" else "")
    return Markup("{}<small>{}</small>").format(short(name), base)


def estimates(entry: Place, names: Iterable[str], *, sized: bool = False) -> list[Cell]:
    """Print some measures of an entry that has ``metrics``."""
    return [estimate(entry.at("metrics", name), name, sized=sized) for name in names]


def sizes(entry: Place) -> list[Cell]:
    """Print how many responses an entry is of, and the share of them that is coded on both layers."""
    return [count(entry.at("n")), share(entry.at("coverage", "eligible"))]
