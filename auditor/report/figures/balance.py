"""How a pool is balanced, a line a category."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.parts import beside, rows
from auditor.report.figures.theme import PANEL, Colour, finish, sheet
from auditor.report.words import plain, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Category = Mapping[str, Any]

_LINE: Final = 19.0
_GUTTER: Final = 122.0
#: The length difference that is always in view, and the grade a text for everybody has at most.
_REACH: Final = 4.0
_GRADE: Final = 8.0
#: The parts of a bar, in their order; the page's key has the same.
_PARTS: Final = (Colour.ACCENT, Colour.SEL, Colour.ELAB)


def counts(categories: Sequence[Category], part: str, label: str) -> Markup:
    """Draw numbers of statements, one part of them set apart."""

    def line(axes: "Axes", y: int, one: Category) -> None:
        _stack(axes, y, [one["n"] - one[part], one[part]])
        axes.annotate(f"{one['n']:,}", (one["n"], y), (5, 0), textcoords="offset points", va="center_baseline")

    return _lines(categories, line, label, ends=(0, max(one["n"] for one in categories)))


def shares(categories: Sequence[Category], name: str, parts: Sequence[str], label: str) -> Markup:
    """Draw parts, in this order, as shares of what can be told; a category of which nothing can has no bar."""

    def line(axes: "Axes", y: int, one: Category) -> None:
        total = sum(one[name].values())
        if total:
            _stack(axes, y, [one[name][part] / total for part in parts])

    return _lines(categories, line, label, ends=(0, 1), mark=(0.5, "50 %"), right=6)


def lengths(categories: Sequence[Category]) -> Markup:
    """Draw by how many characters the stereotype's option is longer on average."""
    known = [one["longer_by"]["characters"] for one in categories if one["longer_by"]]
    reach = max([_REACH, *(abs(value) for value in known)])

    def line(axes: "Axes", y: int, one: Category) -> None:
        if one["longer_by"]:
            value = one["longer_by"]["characters"]
            _stack(axes, y, [value])
            beside(axes, y, signed(value / 100))

    label = "Mean difference of the options' lengths in characters, by category"
    return _lines(categories, line, label, ends=(-reach, reach), mark=(0, "0"))


def grades(categories: Sequence[Category]) -> Markup:
    """Draw mean reading grades."""
    highest = max([1.5 * _GRADE, *(one["grade"] for one in categories)])

    def line(axes: "Axes", y: int, one: Category) -> None:
        _stack(axes, y, [one["grade"]])
        beside(axes, y, f"{one['grade']:.1f}")

    label = "Mean Flesch-Kincaid grade, by category"
    return _lines(categories, line, label, ends=(0, highest), mark=(_GRADE, f"{_GRADE:g}"))


def _lines(
    categories: Sequence[Category],
    line: Callable[["Axes", int, Category], None],
    label: str,
    *,
    ends: tuple[float, float],
    mark: tuple[float, str] | None = None,
    right: float = 40,
) -> Markup:
    """Put a line for each category under another, with its name, and a mark through all of them."""
    height = _LINE * len(categories) + 24
    with sheet(PANEL, height, left=_GUTTER, right=right, top=2, bottom=22) as axes:
        rows(axes, [plain(str(one["category"])) for one in categories])
        axes.set_xlim(ends)
        for y, one in enumerate(categories):
            line(axes, y, one)
        if mark is not None:
            axes.set_xticks([mark[0]], [mark[1]])
            axes.axvline(mark[0], color=Colour.SOFT, linewidth=1)
        return finish(axes, label)


def _stack(axes: "Axes", y: int, values: Sequence[float]) -> None:
    start = 0.0
    for value, colour in zip(values, _PARTS, strict=False):
        axes.barh(y, value, left=start, height=0.74, color=colour, linewidth=0)
        start += value
