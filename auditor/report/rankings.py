"""Show whether the ranking of the deployments depends on the layer or on the condition."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from msgspec import UNSET

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.conditions import AgreementEntry, ConditionRankEntry, RankEntry, RankShareEntry
from auditor.documents.differences import DeploymentDifferenceEntry, MissingDifference, RanksEntry, StandardisedEntry
from auditor.documents.estimates import BoundedEntry
from auditor.report.canvas import Colour, Look, Plot
from auditor.report.document import MOST_DRAWN, NOT_THERE, conditions_of, known, pointer_of, reason
from auditor.report.drawing import join_panels, open_rows, write_beside
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    decimal,
    estimate_cell,
    metric_head,
    no_value,
    number,
    probability,
    short_name,
    table,
    text_cell,
)
from auditor.report.templates import PageSection
from auditor.report.wording import join_words, percent, points

#: A panel of so many deployments still fits: a column for each rank.
MAX_RANKS: Final = 12
#: The measures of the tables of rates and pairs; the first ranks deployments.
_RATES: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
_RANKED: Final = "ber_union_full"
#: The verdicts that show a difference.
_SHOWN: Final = ("higher", "lower")
_LINE: Final = 36.0
#: So many ranks have their number each; of more, every fifth has.
_NAMED: Final = 10
#: The height of the highest bar as a share of its line.
_FULL: Final = 0.84


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section on rankings; None if there is only one deployment."""
    if len(part.deployments) < 2:
        return None
    agreements = known(part.agreement, AgreementEntry)
    stable = known(part.condition_ranks, ConditionRankEntry)
    varied = len(conditions_of(part)) > 1
    values = {
        "mix_differs": any(entry.flags for entry in part.standardised),
        "standardised": _standardised_table(part),
        "differences": _difference_table(part),
        "agreement": _agreement(agreements[0]) if agreements else None,
        "missing": reason(part.agreement),
        "stability": _stability(stable[0]) if stable else None,
        "bars": rank_bars(stable) if len(part.deployments) <= MOST_DRAWN else None,
        "stability_missing": reason(part.condition_ranks) if varied and not stable else "",
    }
    return PageSection(name="rankings", title="Rankings", values=values)


def _standardised_table(part: AnalysisDocument) -> ReportTable | None:
    """Make the table of rates with the same weight for each condition, the pooled one beside them."""
    pooled = {str(entry.by["deployment"]): entry.metrics[_RANKED] for entry in part.deployments}
    rows = []
    for entry in part.standardised:
        name = str(entry.by["deployment"])
        rates = [_rate(entry.metrics[metric], metric) for metric in _RATES]
        rows.append(TableRow(name=name, cells=[*_both_ranks(entry), estimate_cell(pooled[name], _RANKED), *rates]))
    heads = ["deployment", "rank, pooled", "rank", Markup("{}<small>pooled</small>").format(short_name(_RANKED))]
    return table(
        "Rates with the same weight for each condition, 1 = endorses most", [*heads, *map(metric_head, _RATES)], rows
    )


def _both_ranks(entry: StandardisedEntry) -> list[TableCell]:
    if isinstance(entry.ranks, RanksEntry):
        return [count(entry.ranks.pooled), count(entry.ranks.standardised)]
    return [no_value(entry.ranks.missing)] * 2


def _rate(entry: BoundedEntry | Missing, metric: str) -> TableCell:
    return bounded(entry, points if metric == "dni" else percent)


def _difference_table(part: AnalysisDocument) -> ReportTable | None:
    """Make the table of all pairs of deployments, on the questions that both were asked."""
    by_pair: dict[tuple[str, str], dict[str, DeploymentDifferenceEntry | MissingDifference]] = {}
    for entry in part.differences:
        by_pair.setdefault((str(entry.first), str(entry.second)), {})[entry.metric] = entry
    rows = [
        TableRow(name=f"{second} less {first}", cells=_pair_cells(entries))
        for (first, second), entries in by_pair.items()
    ]
    heads = ["pair", *map(metric_head, _RATES), "p of the union", "union"]
    return table("Differences on the same statements and conditions", heads, rows)


def _pair_cells(entries: Mapping[str, DeploymentDifferenceEntry | MissingDifference]) -> list[TableCell]:
    ranked = entries[_RANKED]
    ends = (
        [no_value(ranked.missing)] * 2
        if isinstance(ranked, MissingDifference)
        else [probability(NOT_THERE if ranked.p_adjusted is UNSET else ranked.p_adjusted), text_cell(ranked.verdict)]
    )
    return [*(_difference(entries[metric]) for metric in _RATES), *ends]


def _difference(entry: DeploymentDifferenceEntry | MissingDifference) -> TableCell:
    cell = no_value(entry.missing) if isinstance(entry, MissingDifference) else bounded(entry, points)
    return cell.marked("largest") if isinstance(entry, DeploymentDifferenceEntry) and entry.verdict in _SHOWN else cell


def _agreement(entry: AgreementEntry) -> dict[str, Any]:
    return {
        "rho": decimal(entry.rho),
        "p": probability(entry.p),
        "method": entry.p_method,
        "low": decimal(NOT_THERE if entry.loo_low is UNSET else entry.loo_low),
        "high": decimal(NOT_THERE if entry.loo_high is UNSET else entry.loo_high),
        "table": _rank_table(entry),
    }


def _rank_table(entry: AgreementEntry) -> ReportTable | None:
    rows = [
        TableRow(name=name, cells=[_rank(entry.ranks[metric].get(name)) for metric in entry.metrics])
        for name in entry.deployments
    ]
    heads = ["deployment", *(short_name(metric) for metric in entry.metrics)]
    return table("Rank by layer with its 95 % bootstrap range, 1 = endorses most", heads, rows, source="section V-C")


def _rank(entry: RankEntry | None) -> TableCell:
    if entry is None:
        return no_value(NOT_THERE.missing)
    under = f"[{entry.low}, {entry.high}]"
    return TableCell(text=str(entry.rank), under=(under,), path=pointer_of(entry), kind="num estimate")


def _stability(entry: ConditionRankEntry) -> dict[str, Any]:
    names = sorted(entry.ranks)
    rows = [TableRow(name=name, cells=_ranks(entry.ranks[name])) for name in names]
    ranks = [f"rank {place}" for place in range(1, len(names) + 1)] if len(names) <= MAX_RANKS else []
    heads = ["deployment", "best", "worst", *ranks]
    return {
        "concordance": decimal(entry.concordance),
        "left_out": join_words(entry.left_out),
        "table": table("Rank by the union rate over the conditions", heads, rows, source="section III-E"),
    }


def _ranks(entry: RankShareEntry) -> list[TableCell]:
    """Print the best and the worst rank, and how often each rank comes: as observed, and as resampled."""
    cells = [count(entry.best), count(entry.worst)]
    if len(entry.shares) > MAX_RANKS:
        return cells
    pairs = zip(entry.shares, entry.resampled, strict=True)
    return cells + [number(seen, _whole).above(number(drawn, _whole), "({})") for seen, drawn in pairs]


def _whole(value: float) -> str:
    return percent(value, 0)


def rank_bars(condition_ranks: Sequence[ConditionRankEntry]) -> Markup | None:
    """Draw for each deployment the shares of the conditions by its rank there, rank 1 endorsing most.

    Parameters
    ----------
    condition_ranks
        The document's entries of one rubric.
    """
    return join_panels(map(_panel, condition_ranks)) if condition_ranks else None


def _panel(entry: ConditionRankEntry) -> Markup:
    ranks = sorted(entry.ranks.items(), key=lambda pair: (_mean(pair[1].shares), pair[0]))
    size, highest = len(ranks), max(max(*rank_shares.shares, *rank_shares.resampled) for _, rank_shares in ranks)
    solid = Look(colour=Colour.ACCENT, shape="square", size=7)
    line = Look(colour=Colour.INK, shape="dash", size=9, edge=1.4)
    key = [(solid, "share of the conditions"), (line, "resampled")]
    title = f"Rank over {len(entry.conditions)} conditions"
    plot = open_rows(title, [name for name, _ in ranks], _LINE, top=70, bottom=8, key=key)
    plot.set_x(0.5, size + 0.5)
    shown = range(1, size + 1) if size <= _NAMED else [1, *range(5, size + 1, 5)]
    plot.ticks_x(shown, [str(rank) for rank in shown], is_grid=False, is_above=True)
    for y, (name, rank_shares) in enumerate(ranks):
        _bars(plot, y + 0.45, name, rank_shares, scale=_FULL / highest)
        span = (
            f"{rank_shares.best}"
            if rank_shares.best == rank_shares.worst
            else f"{rank_shares.best}\N{EN DASH}{rank_shares.worst}"
        )
        write_beside(plot, y, span)
    return plot.svg("Shares of the conditions by a deployment's rank, 1 endorsing most")


def _bars(plot: Plot, foot: float, name: str, rank_shares: RankShareEntry, *, scale: float) -> None:
    plot.rule_y(foot, Colour.FAINT)
    for rank, (share, resampled) in enumerate(zip(rank_shares.shares, rank_shares.resampled, strict=True), start=1):
        if share:
            shares = f"{percent(share, 0)} of the conditions, resampled {percent(resampled, 0)}"
            ends, hover = (rank - 0.35, rank + 0.35), f"{name}: rank {rank} under {shares}"
            plot.box(ends, (foot - scale * share, foot), Colour.ACCENT, alpha=0.7, hover=hover)
        if resampled:
            plot.across(foot - scale * resampled, rank - 0.42, rank + 0.42, Look(colour=Colour.INK, width=1.4))


def _mean(shares: Sequence[float]) -> float:
    return sum(rank * share for rank, share in enumerate(shares, start=1))
