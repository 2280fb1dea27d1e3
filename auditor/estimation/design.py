"""Describe the design of an audit, as BiAxisAudit describes its own (Figure 3, Table I)."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from auditor.counting.conditions import FACTORS, level_order
from auditor.counting.joint import FREE_TASKS
from auditor.counting.rows import STATEMENT
from auditor.documents.analysis import PoolEntry
from auditor.documents.design import BenchmarkEntry, DesignEntry, Format
from auditor.estimation.groups import Group
from auditor.metrics.bounds import layer_sizes

_NAME: Final = "this audit"
_UNIT: Final = "answers of a deployment"


def _published(name: str, formats: Sequence[Format], units: int, unit: str, *factors: str) -> BenchmarkEntry:
    return BenchmarkEntry(
        name=name, published=True, formats=formats, units=units, unit=unit, prompt_factors=factors, layered=False
    )


def _if(tasks: Collection[str], name: Format) -> list[Format]:
    return [name] if tasks else []


#: Table I of BiAxisAudit, without its own line; sizes as printed there.
PUBLISHED: Final = (
    _published("CrowS-Pairs", ["closed"], 1508, "examples"),
    _published("StereoSet", ["closed"], 16995, "contexts"),
    _published("BBQ", ["closed"], 58492, "questions with answers", "context", "polarity", "order"),
    _published("CEB", ["closed", "open"], 11004, "samples"),
    _published("F2Bench", ["open"], 2568, "instances"),
    _published("CLEAR-Bias", ["closed"], 4400, "prompts", "attack"),
)


def design(
    pooled: Sequence[Group],
    deployments: Sequence[Group],
    conditions: Sequence[Group],
    pool: Sequence[PoolEntry],
    panels: Mapping[str, Sequence[str]],
) -> list[DesignEntry]:
    """Return the entry of ``design``; nothing where no row is about a statement.

    Parameters
    ----------
    pooled, deployments, conditions
        The groups of all rows, by deployment, and by deployment and condition.
    pool, panels
        The document's entries of those names.
    """
    whole = next((group for group in pooled if group.rubric == STATEMENT), None)
    if whole is None:
        return []
    sizes = [group.n for group in deployments if group.rubric == STATEMENT]
    tested = {tuple(str(group.by[factor]) for factor in FACTORS) for group in conditions if group.rubric == STATEMENT}
    levels: dict[str, list[str]] = {
        factor: sorted({each[place] for each in tested}, key=partial(level_order, factor))
        for place, factor in enumerate(FACTORS)
    }
    tasks = set(levels["task"])
    formats: list[Format] = [*_if(tasks - FREE_TASKS, "closed"), *_if(tasks & FREE_TASKS, "open")]
    benchmark = BenchmarkEntry(
        name=_NAME,
        published=False,
        formats=formats,
        units=max(sizes, default=0),
        unit=_UNIT,
        prompt_factors=[factor for factor in FACTORS if len(levels[factor]) > 1],
        layered=whole.n_eligible > 0,
    )
    n_selection, n_elaboration = layer_sizes(whole.totals)
    categories = {each.category for entry in pool for each in entry.categories if each.category is not None}
    return [
        DesignEntry(
            rubric=STATEMENT,
            n_statements=whole.n_statements,
            n_categories=len(categories),
            levels=levels,
            n_conditions=len(tested),
            n_deployments=len(sizes),
            n=whole.n,
            n_fewest=min(sizes, default=0),
            n_most=max(sizes, default=0),
            n_selection=n_selection,
            n_elaboration=n_elaboration,
            n_eligible=whole.n_eligible,
            judges=sorted({judge for judges in panels.values() for judge in judges}),
            benchmarks=[*PUBLISHED, benchmark],
        )
    ]
