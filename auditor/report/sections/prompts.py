"""Across prompts: how far the rates depend on the way of asking (Figures 1, 5 and 9)."""

from collections.abc import Callable
from typing import Final

from markupsafe import Markup

from auditor.metrics.shares import FACTORS, off_baseline
from auditor.report import figures
from auditor.report.cells import Cell, absent, bounded, choice, count, estimate, fraction, gain
from auditor.report.part import Part, Section, chosen, name_of
from auditor.report.places import Place
from auditor.report.sections.spreads import by_responses, effect, range_table, share_table
from auditor.report.tables import NOT_ASKED, SIZE_HEADS, Row, Table, estimates, head, short, sizes, table
from auditor.report.words import condition_levels, condition_order, condition_text, yes_no

CONDITION_MEASURES: Final = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")
_UNION: Final = "ber_union_full"
_OUTCOMES: Final = ("ber_sel_full", "ber_elab_full", "ber_cor", "ber_union_full")
_FACTOR_TABLES: Final[tuple[tuple[str, str, Callable[[float], str]], ...]] = (
    ("Share of the variance (η²) that a factor explains, by rate", "eta_squared", fraction),
    ("Range over the levels of a factor, by rate", "range", gain),
)


def section(part: Part) -> Section | None:
    """Say what moves the rates, where anything was asked in more than one way."""
    if not part.is_varied:
        return None
    conditions, levels, factors = part.values("conditions"), part.values("levels"), part.entries("factors")
    horizontal, shares = part.entries("horizontal"), part.entries("eta_squared")
    own = [entry for entry in shares if set(entry.value["by"]) <= {"deployment"}]
    grid = _grid(part.entries("conditions"))
    given = {
        "levels": figures.factor_panels(conditions, levels),
        "swings": figures.swing_bars(part.values("horizontal"), conditions),
        "ranges": range_table(horizontal),
        "families": figures.family_panels(conditions, levels, [entry.value for entry in factors]),
        "factors": [_factor_table(factors, caption, name, write) for caption, name, write in _FACTOR_TABLES],
        "share_bars": figures.share_bars([entry.value for entry in by_responses(own)]),
        "shares": share_table(own),
        "category_shares": share_table(
            [entry for entry in shares if set(entry.value["by"]) == {"category"}], "category"
        ),
        "deployment_shares": _deployment_shares(shares),
        "table": condition_table(_grid(part.entries("cells")), "Rates by condition, all deployments together"),
        "panels": figures.condition_panels([entry.value for entry in grid]),
        "cut": len({condition_levels(entry.value["by"]) for entry in grid}) > figures.MOST_CONDITIONS,
        "by_deployment": _by_deployment(part),
    }
    return Section(name="prompts", title="Across prompts: what the way of asking changes", given=given)


def _deployment_shares(entries: list[Place]) -> list[tuple[Markup, Cell]]:
    """Find what the choice of deployment explains, by outcome."""
    rows = chosen(entries, design="deployment", by={})
    return [(short(entry.value["outcome"]), effect(entry, "deployment")) for entry in rows]


def _factor_table(entries: list[Place], caption: str, name: str, write: Callable[[float], str]) -> Table | None:
    """Lay out one figure by factor and rate: what a factor explains, or the range over its levels."""
    found = {(entry.value["factor"], entry.value["outcome"]): entry for entry in entries}
    outcomes = [outcome for outcome in _OUTCOMES if any(key[1] == outcome for key in found)]
    rows = []
    for factor in FACTORS:
        own = [found.get((factor, outcome), NOT_ASKED) for outcome in outcomes]
        rows.append(Row(name=factor, cells=[_moved(entry, name, write) for entry in own]))
    return table(caption, ["factor", *map(head, outcomes)], rows if found else [], source="Figure 9")


def _moved(entry: Place, name: str, write: Callable[[float], str]) -> Cell:
    """Print a figure with its interval, how many responses it rests on and, for a range, between which levels."""
    if name == "eta_squared":
        return bounded(entry.at(name), write).above(count(entry.at("n")), "n = {}")
    cell = bounded(entry.at(name), write, name)
    return cell.above(choice(entry.at(name, "min_at")), "from {}").above(choice(entry.at(name, "max_at")), "to {}")


def _grid(cells: list[Place]) -> list[Place]:
    """Keep the conditions that depart from the baseline in one factor at most."""
    own = [cell for cell in cells if off_baseline(condition_levels(cell.value["by"])) <= 1]
    return sorted(own, key=lambda cell: condition_order(cell.value["by"]))


def condition_table(cells: list[Place], caption: str, source: str = "") -> Table | None:
    """Lay out the pooled rates of some conditions."""
    rows = [
        Row(
            name=condition_text(cell.value["by"]),
            cells=[
                *sizes(cell),
                *estimates(cell, CONDITION_MEASURES),
                choice(cell.at("sign_flip"), yes_no),
            ],
        )
        for cell in cells
    ]
    heads = ["condition", *SIZE_HEADS, *map(head, CONDITION_MEASURES), "DNI changes sides"]
    return table(caption, heads, rows, source=source)


def _by_deployment(part: Part) -> Table | None:
    """Lay out the headline by condition and deployment."""
    entries = _grid(part.entries("conditions"))
    found = {(condition_text(entry.value["by"]), name_of(entry)): entry for entry in entries}
    rows = [
        Row(name=condition, cells=[_union(found.get((condition, name))) for name in part.deployments])
        for condition in dict.fromkeys(condition_text(entry.value["by"]) for entry in entries)
    ]
    return table("Union rate by condition and deployment", ["condition", *part.deployments], rows)


def _union(entry: Place | None) -> Cell:
    if entry is None:
        return absent("not asked")
    return estimate(entry.at("metrics", _UNION), _UNION, sized=True)
