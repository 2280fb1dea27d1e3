"""Estimate how far rates depend on the templates drawn: variance components, contrasts and rates by template."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import UNSET
from scipy import special

from auditor.counting.conditions import BASELINE, FACTORS, Levels
from auditor.documents.base import Missing
from auditor.documents.estimates import BoundedEntry
from auditor.documents.generalizability import (
    ComponentEntry,
    ConditionTemplates,
    GeneralizabilityEntry,
    MissingGeneralizability,
    TemplateContrast,
    TemplateRate,
)
from auditor.estimation.grid import TemplateGrid
from auditor.estimation.levels import in_order
from auditor.estimation.variation import Scope, Variation, few_flags, template_flags
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.rates import METRICS
from auditor.metrics.shares import ONE_TEMPLATE, ConditionCounts
from auditor.stats.components import RESIDUAL, common_component, variance_components
from auditor.stats.intervals import design_effect_wilson
from auditor.stats.sampled_templates import TemplateCounts, TemplateVariance

#: Measures whose components are estimated.
OUTCOMES: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full")
_TEMPLATE: Final = "template"


def generalizability(
    variation: Variation, scope: Scope, outcome: str
) -> GeneralizabilityEntry | MissingGeneralizability:
    """Return the entry of one scope and measure; the document has rates by template where all rows are together."""
    grid = variation.template_grid(scope)
    if grid is None:
        return _missing(scope, outcome, "not every response states its template, or responses have different weights")
    counts, statements = variation.condition_counts(scope, outcome)
    sampled = variation.sampled(scope, outcome)
    if sampled is None:
        return _missing(scope, outcome, "each condition was asked in one template")
    if statements < MIN_STATEMENTS or counts.resampled is None:
        return _missing(scope, outcome, f"{statements} statements, {MIN_STATEMENTS} needed")
    several = np.flatnonzero(sampled.borrowed == 0).tolist()
    seen = variation.seen(scope, outcome)
    variances = _components(grid, outcome, [seen[place] for place in several])
    components = {name: _component(value) for name, value in variances.items()}
    spread = _template_interval(variances, sampled, several)
    if _TEMPLATE in components and spread is not None:
        low, high = spread
        components[_TEMPLATE] = ComponentEntry(
            variance=components[_TEMPLATE].variance,
            sd=components[_TEMPLATE].sd,
            sd_interval=(float(np.sqrt(low)), float(np.sqrt(high))),
        )
    return GeneralizabilityEntry(
        by=scope.by,
        rubric=scope.rubric,
        outcome=outcome,
        base=METRICS[outcome].base,
        n=round(float(counts.trials.sum())),
        n_statements=statements,
        n_templates=len(np.unique(grid.template)),
        n_conditions=len(several),
        components=components,
        template_logit_sd=_logit_sd(components),
        contrasts=_contrasts(counts, sampled, statements),
        conditions=_conditions(grid, outcome, seen, sampled, shown=not scope.by),
        flags=few_flags(statements) + template_flags(scope.rubric, sampled),
    )


def _missing(scope: Scope, outcome: str, reason: str) -> MissingGeneralizability:
    return MissingGeneralizability(by=scope.by, rubric=scope.rubric, outcome=outcome, missing=reason)


def _components(grid: TemplateGrid, outcome: str, conditions: Sequence[int]) -> dict[str, float]:
    """Estimate the components within conditions; a statement's is split into what conditions share and the rest."""
    counts = grid.counts(METRICS[outcome], conditions, by_deployment=True)
    factors = {"statement": counts.statement, _TEMPLATE: counts.template}
    if counts.column.max() > counts.column.min():
        factors["deployment"] = counts.column
    components = variance_components(counts.y, counts.n, factors, counts.stratum)
    common = common_component(counts.y, counts.n, counts.statement, counts.stratum)
    if common is None or "statement" not in components:
        return components
    specific = components.pop("statement") - common
    return {"statement": common, "statement:condition": specific, **components}


def _component(value: float) -> ComponentEntry:
    variance = max(0.0, value)
    return ComponentEntry(variance=variance, sd=float(np.sqrt(variance)))


def _template_interval(
    components: Mapping[str, float], sampled: TemplateVariance, several: Sequence[int]
) -> tuple[float, float] | None:
    """Bound the templates' component (Williams 1962): their mean square is nearly a multiple of chi squared."""
    if _TEMPLATE not in components:
        return None
    share, between = np.diag(sampled.share)[several], np.diag(sampled.between)[several]
    df = sampled.df[several]
    square = float((df * between / share).sum() / df.sum())
    rest = max(0.0, square - components[_TEMPLATE])
    # Templates that all conditions have in common are one sample.
    total = float(df.max() if sampled.shared.sum() > len(sampled.df) else df.sum())
    low, high = (total * square / special.chdtri(total, tail) for tail in (0.025, 0.975))
    return max(0.0, float(low) - rest), max(0.0, float(high) - rest, components[_TEMPLATE])


def _logit_sd(components: Mapping[str, ComponentEntry]) -> BoundedEntry | Missing:
    """Return the templates' standard deviation on the logit scale.

    A small effect e on the logit scale moves the rate of a response by p (1 - p) e, and the residual is the mean of
    p (1 - p) over single responses.
    """
    template, residual = components.get(_TEMPLATE), components[RESIDUAL].variance
    if template is None or template.sd_interval is UNSET or residual <= 0:
        return Missing(missing="the design does not separate templates")
    low, high = template.sd_interval
    return BoundedEntry(value=template.sd / residual, low=low / residual, high=high / residual)


def _contrasts(counts: ConditionCounts, sampled: TemplateVariance, statements: int) -> list[TemplateContrast]:
    """Compare each level with its factor's baseline, the other factors at theirs."""
    assert counts.resampled is not None
    if BASELINE not in counts.conditions:
        return []
    base = list(counts.conditions).index(BASELINE)
    rates, replicates = counts.successes / counts.trials, counts.resampled.rates
    out = []
    for place, factor in enumerate(FACTORS):
        for index in in_order(counts.conditions, place):
            if index == base:
                continue
            value = float(rates[index] - rates[base])
            noise = replicates[:, index] - replicates[:, base]
            pair = np.array([index]), np.array([base])
            variance = np.array([noise.var(ddof=1) * statements / (statements - 1)])
            df = sampled.pair_df(variance, *pair, statements)
            se = np.sqrt(variance + sampled.pair_variance(*pair))
            half = float((special.stdtrit(df, 0.975) * se)[0])
            alone = float(special.stdtrit(statements - 1, 0.975) * np.sqrt(variance[0]))
            out.append(
                TemplateContrast(
                    factor=factor,
                    level=counts.conditions[index][place],
                    baseline=BASELINE[place],
                    value=value,
                    low=value - half,
                    high=value + half,
                    fixed=(value - alone, value + alone),
                    n_templates=int(sampled.n_templates[index]),
                    n_templates_baseline=int(sampled.n_templates[base]),
                    flags=few_flags(statements) + ((ONE_TEMPLATE,) if sampled.borrowed[[index, base]].any() else ()),
                )
            )
    return out


def _conditions(
    grid: TemplateGrid, outcome: str, seen: Sequence[int], sampled: TemplateVariance, *, shown: bool
) -> list[ConditionTemplates]:
    counts = grid.counts(METRICS[outcome], seen)
    out = []
    for column, place in enumerate(seen):
        variance = sampled.extra[column, column] / sampled.share[column, column]
        rates, left_out = _template_rates(grid, counts, column) if shown else ([], 0)
        out.append(
            ConditionTemplates(
                condition=_named(grid.conditions[place]),
                n_templates=int(sampled.n_templates[column]),
                sd=Missing(missing="one template") if sampled.borrowed[column] else float(np.sqrt(variance)),
                templates=rates,
                n_left_out=left_out,
            )
        )
    return out


def _named(condition: Levels) -> dict[str, str]:
    return dict(zip(FACTORS, condition, strict=True))


def _template_rates(grid: TemplateGrid, counts: TemplateCounts, column: int) -> tuple[list[TemplateRate], int]:
    """Return the rates of a condition's templates that enough statements were asked in, and how many have too few."""
    out, left_out = [], 0
    inside = counts.column == column
    for template in np.unique(counts.template[inside]).tolist():
        at = inside & (counts.template == template)
        # One entry is one statement here: a column holds all deployments.
        y, n = counts.y[at], counts.n[at]
        if len(n) < MIN_STATEMENTS:
            left_out += 1
            continue
        interval = design_effect_wilson(y, n)
        out.append(
            TemplateRate(
                template=grid.templates[template],
                value=float(y.sum() / n.sum()),
                low=interval.low,
                high=interval.high,
                n=round(float(n.sum())),
                n_statements=len(n),
            )
        )
    return sorted(out, key=lambda rate: (rate.value, rate.template)), left_out
