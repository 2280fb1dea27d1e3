"""Rankings: does it matter which layer, or which condition, the deployments are ranked by?"""

from typing import Any, Final

from auditor.report import figures
from auditor.report.cells import Cell, absent, count, decimal, number, probability
from auditor.report.part import Part, Section
from auditor.report.places import Place
from auditor.report.tables import Row, Table, short, table
from auditor.report.words import listed, percent

#: A panel of so many deployments still fits: a column for each rank.
MAX_RANKS: Final = 12


def section(part: Part) -> Section | None:
    """Rank the deployments, where there are several."""
    if len(part.deployments) < 2:
        return None
    stability = next(iter(part.entries("condition_ranks")), None)
    given = {
        "agreement": next((_agreement(entry) for entry in part.entries("agreement")), None),
        "missing": part.reason("agreement"),
        "stability": None if stability is None else _stability(stability),
        "bars": figures.rank_bars(part.values("condition_ranks")),
        "stability_missing": part.reason("condition_ranks") if part.is_varied else "",
    }
    return Section(name="rankings", title="Rankings", given=given)


def _agreement(entry: Place) -> dict[str, Any]:
    return {
        "rho": decimal(entry.at("rho")),
        "p": probability(entry.at("p")),
        "method": entry.value["p_method"],
        "low": decimal(entry.at("loo_low")),
        "high": decimal(entry.at("loo_high")),
        "table": _rank_table(entry),
    }


def _rank_table(entry: Place) -> Table | None:
    metrics = entry.value["metrics"]
    rows = [
        Row(name=name, cells=[_rank(entry.at("ranks", metric, name)) for metric in metrics])
        for name in entry.value["deployments"]
    ]
    heads = ["deployment", *(short(metric) for metric in metrics)]
    return table("Rank by layer with its 95 % bootstrap range, 1 = endorses most", heads, rows, source="section V-C")


def _rank(entry: Place) -> Cell:
    if entry.reason:
        return absent(entry.reason)
    under = f"[{entry.value['low']}, {entry.value['high']}]"
    return Cell(text=str(entry.value["rank"]), under=(under,), path=entry.path, kind="num estimate")


def _stability(entry: Place) -> dict[str, Any]:
    names = sorted(entry.at("ranks").names())
    rows = [Row(name=name, cells=_ranks(entry.at("ranks", name), len(names))) for name in names]
    ranks = [f"rank {place}" for place in range(1, len(names) + 1)] if len(names) <= MAX_RANKS else []
    heads = ["deployment", "best", "worst", *ranks]
    return {
        "concordance": decimal(entry.at("concordance")),
        "left_out": listed([str(name.value) for name in entry.at("left_out")]),
        "table": table("Rank by the union rate over the conditions", heads, rows, source="section III-E"),
    }


def _ranks(entry: Place, size: int) -> list[Cell]:
    """Print the best and the worst rank, and how often each rank comes: as observed, and as resampled."""
    cells = [count(entry.at("best")), count(entry.at("worst"))]
    if size > MAX_RANKS:
        return cells
    pairs = zip(entry.at("shares"), entry.at("resampled"), strict=True)
    return cells + [number(seen, _whole).above(number(drawn, _whole), "({})") for seen, drawn in pairs]


def _whole(value: float) -> str:
    return percent(value, 0)
