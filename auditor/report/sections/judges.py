"""Judges: do they agree, what is the panel worth, and does any one of them decide (Figure 4, section V-A)?"""

from collections.abc import Sequence
from typing import Any, Final

from auditor.report import figures
from auditor.report.cells import Cell, absent, choice, count, decimal, number, share
from auditor.report.part import Section, chosen
from auditor.report.places import Place
from auditor.report.tables import Row, Table, head, table
from auditor.report.words import MINUS, RHO, by_text, listed, points, yes_no

LAYERS: Final = {"sel": "selection", "elab": "elaboration"}
_VENDOR_MEASURES: Final = ("ber_sel", "ber_elab", "ber_cor", "ber_union", "ir", "dni")
_NOT_READ: Final = "has not read it"


def section(document: Place) -> Section | None:
    """Show the judges, where any two of them read the same."""
    if not len(document.at("kappa")):
        return None
    given = {
        "dots": figures.judge_dots([entry.value for entry in _known(document.at("judge_means"))]),
        "means": _mean_table(_known(document.at("judge_means"))),
        "pairs": _pair_table(document.at("kappa")),
        "panel": _panel_table(document.at("panel")),
        "swaps": _swap_table(document.at("panel_swap")),
        "folds": [_fold(entry) for entry in _known(document.at("qe_fold"))],
        "fold_table": _fold_table(document.at("deployments")),
        "vendors": _vendor_table(document.at("vendors")),
    }
    return Section(name="judges", title="Judges", given=given)


def _known(entries: Place) -> list[Place]:
    return [entry for entry in entries if "missing" not in entry.value or len(entry.names()) > 1]


def _names(entries: Sequence[Place]) -> list[str]:
    """Name the deployments that entries are of."""
    return sorted({str(entry.value["deployment"]) for entry in entries if entry.value["deployment"] is not None})


def _mean_table(entries: list[Place]) -> Table | None:
    """Lay out each judge's mean kappa with the others, over all deployments and by deployment."""
    found = {(e.value["layer"], e.value["judge"], e.value["deployment"]): e for e in entries}
    names = _names(entries)
    rows = [
        Row(
            name=f"{judge}, {LAYERS[layer]}",
            cells=[_kappa(found.get((layer, judge, where))) for where in (None, *names)],
        )
        for layer, judge in dict.fromkeys(key[:2] for key in found)
    ]
    return table("Mean κ of a judge with the others", ["judge", "all", *names], rows, source="Figure 4")


def _pair_table(entries: Place) -> Table | None:
    rows = [
        Row(
            name=f"{entry.value['judge']} and {entry.value['other']}, {LAYERS[entry.value['layer']]}",
            cells=[_kappa(entry)],
        )
        for entry in chosen(entries, deployment=None)
    ]
    return table("Cohen's κ on the responses that both judges labelled", ["judges", "κ"], rows, source="section V-A")


def _kappa(entry: Place | None) -> Cell:
    if entry is None:
        return absent(_NOT_READ)
    if entry.reason:
        return absent(entry.reason)
    return decimal(entry.at("value")).above(count(entry.at("n")), "n = {}")


def _panel_table(entries: Place) -> Table | None:
    """Lay out how many independent votes the panel is worth."""
    rows = [
        Row(
            name=str(entry.value["deployment"] or "all deployments"),
            cells=[
                count(entry.at("n_judges")),
                decimal(entry.at("rho")),
                decimal(entry.at("n_eff"), 2),
            ],
        )
        for entry in _known(entries)
    ]
    heads = ["deployment", "judges", "mean κ", "votes it is worth"]
    return table(f"What the panel's votes are worth: m / (1 + (m {MINUS} 1) {RHO})", heads, rows)


def _swap_table(entries: Place) -> Table | None:
    """Lay out what leaving one judge out changes, for all deployments alike."""
    rows = [
        Row(
            name=f"without {entry.value['without']}",
            cells=[
                number(entry.at("change"), points).above(choice(entry.at("deployment"))),
                decimal(entry.at("rho")),
                decimal(entry.at("rank_shift"), 0),
                choice(entry.at("same_ranking"), yes_no),
            ],
        )
        for entry in _known(entries)
        if "without" in entry.value
    ]
    heads = ["panel", "largest change", f"{RHO} of the rankings", "largest shift of a rank", "same ranking"]
    return table("The elaboration rate by a panel without one judge", heads, rows, source="section V-A")


def _fold(entry: Place) -> dict[str, Any]:
    rows = [Row(name=name, cells=[decimal(entry.at("rho", name))]) for name in entry.at("rho").names()]
    return {
        "missing": entry.reason,
        "change": number(entry.at("change"), points),
        "condition": choice(entry.at("condition")),
        "deployment": choice(entry.at("deployment")),
        "robust": entry.at("robust").value is True,
        "left_out": listed([str(name.value) for name in entry.at("left_out")]),
        "table": table("Rankings with and without the fold", ["condition", RHO], rows, source="Appendix C-A"),
    }


def _fold_table(deployments: Place) -> Table | None:
    rows = [
        Row(
            name=by_text(entry.value["by"]),
            cells=[
                count(entry.at("n_eligible")),
                share(entry.at("qe_fold", "ir")),
                share(entry.at("qe_fold", "ir_folded")),
                choice(entry.at("qe_fold", "robust"), yes_no),
            ],
        )
        for entry in deployments
    ]
    heads = ["deployment", "coded on both layers", "IR", "IR, qualified endorsements folded", "within a point"]
    return table("Qualified endorsements counted as no endorsement", heads, rows, source="Appendix C-A")


def _vendor_table(entries: Place) -> Table | None:
    """Lay out everything again without the deployments of one vendor."""
    rows = [
        Row(
            name=f"without {entry.value['vendor']}, {kind}",
            cells=[
                count(entry.at("n_deployments")),
                *(_rate(entry.at(key, name), name) for name in _VENDOR_MEASURES),
                decimal(entry.at("rho")),
            ],
        )
        for entry in _known(entries)
        for key, kind in (("pooled", "pooled"), ("unweighted", "mean"))
    ]
    heads = ["deployments", "how many", *map(head, _VENDOR_MEASURES), f"{RHO} of the layers"]
    return table("One vendor's deployments left out", heads, rows, source="section V-A")


def _rate(place: Place, name: str) -> Cell:
    return number(place, points) if name == "dni" else share(place)
