"""The levels of the prompt's factors, in the order of the instrument, and the entries asked under them."""

from collections.abc import Iterable

from auditor.metrics.shares import FACTORS, Levels, level_order, own_condition
from auditor.report.part import Part, name_of
from auditor.report.places import Place
from auditor.report.words import condition_levels


def own_levels(part: Part, factor: str) -> list[str]:
    """List the levels of a factor that were asked with the other factors at their baseline."""
    place = FACTORS.index(factor)
    asked = {levels[place] for levels in part.conditions if levels == own_condition(factor, levels[place])}
    return sorted(asked, key=lambda level: level_order(factor, level))


def asked_levels(part: Part) -> dict[str, list[str]]:
    """List the levels of each factor that was varied at all."""
    found = {factor: {levels[place] for levels in part.conditions} for place, factor in enumerate(FACTORS)}
    return {
        factor: sorted(levels, key=lambda level: level_order(factor, level))
        for factor, levels in found.items()
        if len(levels) > 1
    }


def by_condition(entries: Iterable[Place]) -> dict[tuple[str, Levels], Place]:
    """Find entries by deployment and condition."""
    return {(name_of(entry), condition_levels(entry.value["by"])): entry for entry in entries}
