"""Render the page of a statement pool: its data card, drawings of its balance, the checks, and the statements.

It is made from the document of ``auditor.instrument.pool_report`` alone; the same document gives the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jinja2 import PackageLoader
from markupsafe import Markup

from auditor.report.canvas import SMALL, Colour, Plot
from auditor.report.drawing import name_rows, rows_of, write_beside
from auditor.report.templates import environment
from auditor.report.wording import as_words, signed

#: Findings of a check, and statements, that the page shows; all of them are in pool.json.
MAX_FINDINGS: Final = 20
MAX_STATEMENTS: Final = 1000
Category = Mapping[str, Any]
_LINE: Final = 23.0
_GUTTER: Final = 136.0
#: The length difference that is always shown, and the highest reading grade of a text for everybody.
_REACH: Final = 4.0
_GRADE: Final = 8.0
#: The parts of a bar, in their order; the page's key has the same.
_PARTS: Final = (Colour.ACCENT, Colour.SEL, Colour.ELAB)


def render_pool(document: Mapping[str, Any]) -> bytes:
    """Render the page."""
    templates = environment(PackageLoader("auditor.report", "page"))
    templates.filters["plain"] = lambda name: name.replace("_", " ")
    page = templates.get_template("pool.html.j2").render(
        document=document,
        figures=_figures(document),
        max_findings=MAX_FINDINGS,
        max_statements=MAX_STATEMENTS,
        groups=_groups(document["statements"][:MAX_STATEMENTS]),
    )
    return page.encode("utf-8")


def _groups(statements: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for statement in statements:
        groups.setdefault(statement["category"] or "no category", []).append(statement)
    return groups


def _figures(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Draw each measure by category; the keys name the parts of a bar in their order."""
    categories = document["categories"]
    joined = counts(categories, "n_intersectional", "Statements by category, the intersectional ones apart")
    placed = counts(categories, "n_regional", "Statements by category, those that depend on a region apart")
    first = shares(categories, "first", ("stereotype", "counter"), "Share of scenes by the group named first")
    places = ("start", "middle", "end")
    blank = shares(categories, "blank", places, "Share of completions by where the blank is")
    return [
        {"title": "Statements", "keys": ("one group", "intersectional"), "svg": joined},
        {"title": "Depends on local law or culture", "keys": ("no", "yes"), "svg": placed},
        {"title": "Named first in the scene", "keys": ("stereotyped group", "the other"), "svg": first},
        {"title": "Place of the blank", "keys": places, "svg": blank},
        {"title": "Stereotyped group's name longer by", "keys": ("characters",), "svg": lengths(categories)},
        {"title": "Reading grade", "keys": ("years of school",), "svg": grades(categories)},
    ]


def counts(categories: Sequence[Category], part: str, label: str) -> Markup:
    """Draw numbers of statements, with one part highlighted."""

    def line(plot: Plot, y: int, category: Category) -> None:
        _stack(plot, y, [category["n"] - category[part], category[part]])
        at_x, at_y = plot.at(category["n"], y)
        plot.write(at_x + 5, at_y, f"{category['n']:,}")

    return _lines(categories, line, label, ends=(0, max(category["n"] for category in categories)))


def shares(categories: Sequence[Category], name: str, parts: Sequence[str], label: str) -> Markup:
    """Draw parts, in this order, as shares of the known statements; a category without any has no bar."""

    def line(plot: Plot, y: int, category: Category) -> None:
        total = sum(category[name].values())
        if total:
            _stack(plot, y, [category[name][part] / total for part in parts])

    return _lines(categories, line, label, ends=(0, 1), mark=(0.5, "50 %"), right=6)


def lengths(categories: Sequence[Category]) -> Markup:
    """Draw by how many characters the stereotype's option is longer on average."""
    known = [category["longer_by"]["characters"] for category in categories if category["longer_by"]]
    reach = max([_REACH, *(abs(value) for value in known)])

    def line(plot: Plot, y: int, category: Category) -> None:
        if category["longer_by"]:
            value = category["longer_by"]["characters"]
            _stack(plot, y, [value])
            write_beside(plot, y, signed(value / 100))

    label = "Mean difference of the options' lengths in characters, by category"
    return _lines(categories, line, label, ends=(-reach, reach), mark=(0, "0"))


def grades(categories: Sequence[Category]) -> Markup:
    """Draw mean reading grades."""
    highest = max([1.5 * _GRADE, *(category["grade"] for category in categories)])

    def line(plot: Plot, y: int, category: Category) -> None:
        _stack(plot, y, [category["grade"]])
        write_beside(plot, y, f"{category['grade']:.1f}")

    label = "Mean Flesch-Kincaid grade, by category"
    return _lines(categories, line, label, ends=(0, highest), mark=(_GRADE, f"{_GRADE:g}"))


def _lines(
    categories: Sequence[Category],
    line: Callable[[Plot, int, Category], None],
    label: str,
    *,
    ends: tuple[float, float],
    mark: tuple[float, str] | None = None,
    right: float = 40,
) -> Markup:
    """Draw one row per category with its name, and one mark through all rows."""
    height = _LINE * len(categories) + 24
    plot = Plot(SMALL, height, left=_GUTTER, right=right, top=2, bottom=22)
    name_rows(plot, [as_words(str(category["category"])) for category in categories])
    plot.set_x(*ends)
    for y, category in enumerate(categories):
        line(plot, y, category)
    if mark is not None:
        plot.ticks_x([mark[0]], [mark[1]], is_grid=False)
        plot.rule_x(mark[0])
    return plot.svg(label)


def _stack(plot: Plot, y: int, values: Sequence[float]) -> None:
    start = 0.0
    for value, colour in zip(values, _PARTS, strict=False):
        plot.box((start, start + value), rows_of(y, 0.74), colour)
        start += value
