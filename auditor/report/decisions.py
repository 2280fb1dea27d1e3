"""Render the page of ``decisions.json``: rates by group, and their ratios to the highest rate."""

from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import PackageLoader
from markupsafe import Markup
from msgspec import UNSET

from auditor.documents.base import Missing
from auditor.documents.decisions import DecisionGroupEntry, DecisionsDocument, DecisionTableEntry, ImpactRatioEntry
from auditor.report.canvas import UNION, WIDE, Colour, Look
from auditor.report.drawing import gutter_width, open_rows, write_beside
from auditor.report.templates import environment
from auditor.report.wording import DASH, as_words, join_words, percent

_LINE = 28.0
_FINDINGS = {
    "below": "below the threshold",
    "not_below": "not below",
    "unclear": "unclear: the interval holds the threshold",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CategoryLine:
    """A row of a table, as text."""

    name: str
    n: str
    rate: str
    ratio: str
    finding: str


def render_decisions(document: DecisionsDocument) -> bytes:
    """Render the page."""
    page = (
        environment(PackageLoader("auditor.report", "page"))
        .get_template("decisions.html.j2")
        .render(
            document=document,
            summary=list(_summary(document)),
            tables=[
                {
                    "title": table_title(table),
                    "table": table,
                    "lines": category_lines(table),
                    "drawing": draw_ratios(table, document.rule.threshold),
                }
                for table in document.tables
            ],
        )
    )
    return page.encode("utf-8")


def table_title(table: DecisionTableEntry) -> str:
    """Return the heading of a table."""
    return "By " + " and ".join(as_words(name) for name in table.fields)


def _summary(document: DecisionsDocument) -> Iterator[str]:
    """Say in a sentence a table which group has the lowest ratio, and what that shows."""
    for table in document.tables:
        ratios = [
            (each.impact_ratio.value, " · ".join(each.values), each.impact_ratio)
            for each in table.categories
            if isinstance(each.impact_ratio, ImpactRatioEntry)
        ]
        if not ratios or isinstance(table.highest, Missing):
            reason = table.highest.missing if isinstance(table.highest, Missing) else "no ratio"
            yield f"{table_title(table)}: no ratios, because {reason}."
            continue
        value, name, ratio = min(ratios, key=lambda each: each[:2])
        text = (
            f"{table_title(table)}: the lowest ratio is {value:.2f} {_interval(ratio)} ({name}; the highest rate has "
        )
        text += f"{' · '.join(table.highest)})"
        below = [name for _, name, each in ratios if each.finding == "below"]
        if document.rule.threshold is None:
            yield f"{text}."
        elif below:
            yield f"{text}. Below {document.rule.threshold:g} beyond chance: {join_words(sorted(below))}."
        else:
            yield f"{text}. No group is below {document.rule.threshold:g} beyond chance."


def _interval(ratio: ImpactRatioEntry) -> str:
    return f"[{ratio.interval[0]:.2f}, {ratio.interval[1]:.2f}]"


def category_lines(table: DecisionTableEntry) -> list[CategoryLine]:
    """Return the rows of a table as text."""
    return [_line(each) for each in table.categories]


def _line(each: DecisionGroupEntry) -> CategoryLine:
    if isinstance(each.rate, Missing):
        rate = DASH
    else:
        rate = percent(each.rate.value, 1)
        if not isinstance(each.rate.interval, Missing):
            rate += f" [{100 * each.rate.interval[0]:.1f}, {100 * each.rate.interval[1]:.1f}]"
    if isinstance(each.impact_ratio, Missing):
        ratio, finding = DASH, each.impact_ratio.missing
    else:
        ratio = f"{each.impact_ratio.value:.2f} {_interval(each.impact_ratio)}"
        finding = "" if each.impact_ratio.finding is UNSET else _FINDINGS[each.impact_ratio.finding]
    return CategoryLine(
        name=" · ".join(each.values), n=f"{each.favourable:,} of {each.n:,}", rate=rate, ratio=ratio, finding=finding
    )


def draw_ratios(table: DecisionTableEntry, threshold: float | None) -> Markup | None:
    """Draw the ratio of each category with its interval, and the threshold; None where there is none."""
    ratios = [
        (" · ".join(each.values), each.impact_ratio)
        for each in table.categories
        if isinstance(each.impact_ratio, ImpactRatioEntry)
    ]
    if not ratios:
        return None
    names = [name for name, _ in ratios]
    title = "Ratio to the highest rate"
    plot = open_rows(title, names, _LINE, width=WIDE, left=gutter_width(names, WIDE / 3), top=34, right=60)
    plot.set_x(0, 1)
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    plot.ticks_x(ticks, [f"{tick:g}" for tick in ticks])
    if threshold is not None:
        plot.rule_x(threshold, Colour.FAIL)
    for y, (name, ratio) in enumerate(ratios):
        plot.across(y, *ratio.interval, Look(colour=UNION.colour, width=2, alpha=0.6))
        plot.mark(ratio.value, y, UNION)
        write_beside(plot, y, f"{ratio.value:.2f}", hover=f"{name}: {ratio.value:.2f} {_interval(ratio)}")
    return plot.svg(f"{title}, {table_title(table).lower()}, with simultaneous 95 % intervals")
