"""Estimate how many templates a claim about two conditions needs, from variance components."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from auditor.probes.forecast import FEWEST_STATEMENTS, TYPICAL
from auditor.stats.intervals import t_quantile

#: Numbers of templates whose half width is printed.
SHOWN: Final = (2, 3, 5, 10, 20, 40)
#: Differences whose number of templates is printed.
CLAIMS: Final = (0.05, 0.10, 0.15)
#: No more templates than this are proposed.
MOST: Final = 200
#: Assumed standard deviations on the logit scale: of templates, and of a statement under one condition.
TEMPLATE_LOGIT_SD: Final = 0.4
STATEMENT_LOGIT_SD: Final = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateSpread:
    """Variance components of a single response, as ``generalizability`` of ``analysis.json`` has them."""

    template: float
    statement_condition: float
    residual: float
    source: str  #: a file, or empty if they are assumed


def assumed_spread() -> TemplateSpread:
    """Return the components that are assumed without an analysis.

    A small effect e on the logit scale moves a rate by p (1 - p) (1 - icc) e.

    >>> round(assumed_spread().template ** 0.5, 4)
    0.0577
    """
    within = TYPICAL.rate * (1 - TYPICAL.rate) * (1 - TYPICAL.icc)
    return TemplateSpread(
        template=(TEMPLATE_LOGIT_SD * within) ** 2,
        statement_condition=(STATEMENT_LOGIT_SD * within) ** 2,
        residual=within,
        source="",
    )


def contrast_half_width(spread: TemplateSpread, *, statements: int, templates: int, per_statement: float) -> float:
    """Return half the 95 % interval of the difference of two conditions over all templates and statements.

    ``V = 2 (template / T + statement:condition / G + residual / (G m))``, with t of Satterthwaite's degrees of freedom
    from G - 1 and from T - 1 in each condition.

    Parameters
    ----------
    spread
        The components.
    statements, templates
        G, and T in each condition, both at least 2; the conditions have no template in common.
    per_statement
        m, answers to each statement in each condition.

    Examples
    --------
    >>> few, many = (
    ...     contrast_half_width(assumed_spread(), statements=200, templates=t, per_statement=t) for t in (5, 20)
    ... )
    >>> round(few, 3), round(many, 3)
    (0.093, 0.042)
    """
    chance = spread.residual / (statements * per_statement)
    condition, wording = spread.statement_condition / statements, spread.template / templates + chance
    variance = 2 * (condition + wording)
    df = variance**2 / ((2 * condition) ** 2 / (statements - 1) + 2 * wording**2 / (templates - 1))
    return min(1.0, t_quantile(0.95, df) * math.sqrt(variance))


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplatePrecision:
    """What numbers of templates can show; None: more than ``MOST`` templates, or never."""

    spread: TemplateSpread
    half_widths: Mapping[int, float]
    needed: Mapping[float, int | None]


def template_precision(
    spread: TemplateSpread, *, statements: int, draws: int, rotating: bool
) -> TemplatePrecision | None:
    """Compute half widths for ``SHOWN`` templates, and the number of templates that ``CLAIMS`` need.

    There is no estimate for fewer than ``FEWEST_STATEMENTS`` statements.

    Parameters
    ----------
    rotating
        Whether each statement is asked in one of the templates, and not in all of them.
    """
    if statements < FEWEST_STATEMENTS:
        return None

    def half_width(templates: int) -> float:
        each = draws if rotating else draws * templates
        return contrast_half_width(spread, statements=statements, templates=templates, per_statement=each)

    widths = {templates: half_width(templates) for templates in range(2, MOST + 1)}
    needed = {claim: next((t for t, width in widths.items() if width < claim), None) for claim in CLAIMS}
    return TemplatePrecision(spread=spread, half_widths={t: widths[t] for t in SHOWN}, needed=needed)
