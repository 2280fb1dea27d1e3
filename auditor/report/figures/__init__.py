"""The report's figures, drawn with matplotlib from entries of the document."""

from auditor.report.figures.hand import condition_panels, coverage_bars, divergence_map, range_bars, share_bars

__all__ = ["condition_panels", "coverage_bars", "divergence_map", "range_bars", "share_bars"]
