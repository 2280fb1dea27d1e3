"""Across prompts: how far the rates depend on the way of asking (Figures 1, 5 and 9)."""

from collections.abc import Callable, Iterator
from typing import Final

from markupsafe import Markup

from auditor.metrics.shares import FACTORS, off_baseline
from auditor.report import figures
from auditor.report.cells import Cell, absent, between, bounded, choice, count, decimal, estimate, fraction, gain, share
from auditor.report.part import Part, Section, chosen, name_of
from auditor.report.places import Place
from auditor.report.tables import SIZE_HEADS, Row, Table, estimates, head, short, sizes, table
from auditor.report.words import by_text, condition_levels, condition_order, condition_text, yes_no

CONDITION_MEASURES: Final = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")
_UNION: Final = "ber_union_full"
_OUTCOMES: Final = ("ber_sel_full", "ber_elab_full", "ber_cor", "ber_union_full")
_FACTOR_TABLES: Final[tuple[tuple[str, str, Callable[[float], str]], ...]] = (
    ("Share of the variance (η²) that a factor explains, by rate", "eta_squared", fraction),
    ("Range over the levels of a factor, by rate", "range", gain),
)
_NOT_ASKED: Final = Place({"missing": "not asked"})


def section(part: Part) -> Section | None:
    """Say what moves the rates, where anything was asked in more than one way."""
    if not part.is_varied:
        return None
    conditions, levels, factors = part.values("conditions"), part.values("levels"), part.entries("factors")
    horizontal, shares = part.entries("horizontal"), part.entries("eta_squared")
    own = [entry for entry in shares if set(entry.value["by"]) <= {"deployment"}]
    given = {
        "levels": figures.factor_panels(conditions, levels),
        "swings": figures.swing_bars(part.values("horizontal"), conditions),
        "ranges": range_table(horizontal),
        "families": figures.family_panels(conditions, levels, [entry.value for entry in factors]),
        "factors": [_factor_table(factors, caption, name, write) for caption, name, write in _FACTOR_TABLES],
        "share_bars": figures.share_bars([entry.value for entry in _of_responses(own)]),
        "shares": share_table(own),
        "category_shares": share_table([entry for entry in shares if set(entry.value["by"]) == {"category"}]),
        "deployment_shares": _deployment_shares(shares),
        "table": condition_table(_grid(part.entries("cells")), "Rates by condition, all deployments together"),
        "panels": figures.condition_panels([entry.value for entry in _grid(part.entries("conditions"))]),
        "by_deployment": _by_deployment(part),
    }
    return Section(name="prompts", title="Across prompts: what the way of asking changes", given=given)


def range_table(entries: list[Place]) -> Table | None:
    """Lay out the range of the headline over each factor, a line a group."""
    rows = []
    for name, groups in _by_group(chosen(entries, metric=_UNION)):
        found = {entry.value["over"]: entry for entry in groups}
        task = found.get("task", _NOT_ASKED)
        ends = [count(task.at("n_statements")), _end(task, "min"), _end(task, "max")]
        rows.append(Row(name=name, cells=[*ends, *(_range(found, factor) for factor in FACTORS)]))
    heads = ["deployment", "statements", "lowest task", "highest task", *(f"range over {factor}" for factor in FACTORS)]
    return table("Range of the union rate over the levels of a factor", heads, rows, source="Figure 5")


def _by_group(entries: list[Place]) -> Iterator[tuple[str, list[Place]]]:
    """Group entries by what they are of, all rows last."""
    groups: dict[str, list[Place]] = {}
    for entry in sorted(entries, key=lambda entry: (not entry.value["by"], by_text(entry.value["by"]))):
        groups.setdefault(by_text(entry.value["by"]), []).append(entry)
    yield from groups.items()


def _end(entry: Place, end: str) -> Cell:
    return share(entry.at(end)).above(choice(entry.at(f"{end}_at")))


def _range(found: dict[str, Place], factor: str) -> Cell:
    return bounded(found[factor], gain, "range") if factor in found else absent("not asked")


def share_table(entries: list[Place]) -> Table | None:
    """Lay out what each factor explains of the headline's variance, a line a group and weighting."""
    own = sorted(_of_responses(entries), key=lambda entry: not entry.value["by"])
    alike = chosen(entries, design="oat", weights="equal", by={})
    rows = [_effects(by_text(e.value["by"]), e, "" if e.value["by"] else "pooled") for e in own]
    rows += [_effects("all rows, every condition alike", entry, "mean") for entry in alike]
    heads = ["deployment", "responses", *(f"η² {factor}" for factor in FACTORS)]
    return table("Share of the variance of the union rate that a factor explains", heads, rows, source="section V-B")


def _effects(name: str, entry: Place, kind: str) -> Row:
    return Row(name=name, cells=[count(entry.at("n")), *(effect(entry, factor) for factor in FACTORS)], kind=kind)


def effect(entry: Place, name: str) -> Cell:
    """Print one effect of an entry of ``eta_squared`` with its interval."""
    return decimal(entry.at("effects", name)).above(between(entry.at("intervals", name), fraction))


def _of_responses(entries: list[Place]) -> list[Place]:
    return chosen(entries, design="oat", weights="responses")


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
        own = [found.get((factor, outcome), _NOT_ASKED) for outcome in outcomes]
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
