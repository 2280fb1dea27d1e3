"""The report's figures: entries of the document in, inline ``<svg>`` out, None where nothing can be drawn.

A module a family draws with ``parts`` on a sheet of ``theme``; ``inline`` makes what matplotlib writes fit for a page.
"""

from auditor.report.figures.conditions import MOST as MOST_CONDITIONS
from auditor.report.figures.conditions import condition_panels
from auditor.report.figures.coverage import coverage_bars
from auditor.report.figures.crossed import cell_map
from auditor.report.figures.divergence import reliability_map
from auditor.report.figures.interaction import interaction_panel
from auditor.report.figures.judges import judge_dots
from auditor.report.figures.layers import naive_bars
from auditor.report.figures.levels import factor_panels, family_panels
from auditor.report.figures.mitigation import mitigation_panels
from auditor.report.figures.ranks import rank_bars
from auditor.report.figures.shares import share_bars
from auditor.report.figures.slices import slice_map
from auditor.report.figures.swings import swing_bars
from auditor.report.figures.tradeoff import pareto_panels

__all__ = [
    "MOST_CONDITIONS",
    "cell_map",
    "condition_panels",
    "coverage_bars",
    "factor_panels",
    "family_panels",
    "interaction_panel",
    "judge_dots",
    "mitigation_panels",
    "naive_bars",
    "pareto_panels",
    "rank_bars",
    "reliability_map",
    "share_bars",
    "slice_map",
    "swing_bars",
]
