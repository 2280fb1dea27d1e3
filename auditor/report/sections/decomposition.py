"""Within a response: what a single label hides (Table III, Figures 2b and 6)."""

from collections.abc import Sequence
from typing import Final

from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS
from auditor.report import figures
from auditor.report.cells import Cell, absent, average, count, share, word
from auditor.report.part import Part, Section, name_of
from auditor.report.places import Place
from auditor.report.tables import Row, Table, estimates, head, table

MEASURES: Final = ("ber_sel", "ber_elab", "ber_cor", "ber_union", "ir", "dni", "ir_over_union")
_SIZES: Final = ("responses", "with a selection", "coded on both layers")


def section(part: Part) -> Section:
    """Decompose the audit of each deployment."""
    deployments, entries = part.values("deployments"), part.entries("deployments")
    known = any(not entry.at("metrics", "ir").reason for entry in entries)
    given = {
        "bars": figures.naive_bars(deployments),
        "map": figures.reliability_map(deployments),
        "table": decomposition_table(entries, part.pooled, part.entries("means")) if known else None,
        "missing": "" if known else part.pooled.at("metrics", "ir").reason,
    }
    return Section(name="decomposition", title="Within a response: what a single label hides", given=given)


def decomposition_table(deployments: Sequence[Place], pooled: Place, means: Sequence[Place] = ()) -> Table | None:
    """Lay out Table III of some deployments: pooled by responses, and the mean in which each counts alike."""
    rows = [_row(name_of(entry), entry) for entry in deployments]
    rows.append(_row("pooled by responses", pooled, "pooled"))
    rows += [_mean(entry) for entry in means]
    heads = ["deployment", *_SIZES, *map(head, MEASURES), "selection alone would"]
    return table("Decomposition by deployment", heads, rows, source="Table III")


def _row(name: str, entry: Place, kind: str = "") -> Row:
    eligible = count(entry.at("n_eligible")).above(share(entry.at("coverage", "eligible")))
    sizes = [count(entry.at("n")), count(entry.at("n_selection")), eligible]
    return Row(name=name, cells=[*sizes, *estimates(entry, MEASURES), error(entry.at("metrics", "dni"))], kind=kind)


def _mean(entry: Place) -> Row:
    blank = [word("")] * len(_SIZES)
    cells = [average(entry.at("metrics", name), name) for name in MEASURES]
    return Row(name="mean of deployments", cells=[*blank, *cells, word("")], kind="mean")


def error(dni: Place) -> Cell:
    """Say which way an audit of the selection alone errs, where the interval of DNI shows it."""
    if dni.reason:
        return absent(dni.reason)
    if FEW_CLUSTERS in dni.value["flags"]:
        return absent(f"fewer than {ENOUGH_STATEMENTS} statements: no finding")
    if dni.value["low"] > 0:
        return word("over-estimate")
    return word("under-estimate" if dni.value["high"] < 0 else "neither shown")
