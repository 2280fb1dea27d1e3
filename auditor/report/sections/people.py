"""People's labels: what they would find, and who agrees with whom."""

from typing import Final

from markupsafe import Markup

from auditor.report.cells import bounded, count, fraction
from auditor.report.part import Section, chosen
from auditor.report.places import Place
from auditor.report.sections.judges import LAYERS
from auditor.report.tables import Row, Table, estimates, table
from auditor.report.words import by_text

_MEASURES: Final = ("ber_elab_full_corrected", "ber_elab_corrected")


def section(document: Place) -> Section | None:
    """Show what people have said: a file's labels are of its rows, a period's of the samples drawn in it."""
    if not document.at("reviews").reason:
        pooled = [entry for entry in document.at("groups") if not entry.value["by"]]
        rates = [(_entry_name(entry), entry) for entry in [*document.at("deployments"), *pooled]]
        kappa = document.at("reviews", "kappa")
    elif not document.at("people").reason:
        rates = [(str(entry.value["deployment"]), entry) for entry in document.at("people", "deployments")]
        kappa = document.at("people", "kappa")
    else:
        return None
    given = {"rates": _rate_table(rates), "kappa": _kappa_table(kappa)}
    return Section(name="people", title=Markup("People's labels"), given=given)


def _entry_name(entry: Place) -> str:
    return by_text(entry.value["by"]) + ("" if entry.value["rubric"] == "statement" else f" ({entry.value['rubric']})")


def _rate_table(rates: list[tuple[str, Place]]) -> Table | None:
    rows = [Row(name=name, cells=estimates(entry, _MEASURES, sized=True)) for name, entry in rates]
    heads = ["deployment", "of all with an elaboration", "of all coded on both layers"]
    return table("BER of the elaboration, corrected by people's labels", heads, rows)


def _kappa_table(entries: Place) -> Table | None:
    rows = [
        Row(name=_pair(entry), cells=[count(entry.at("n")), count(entry.at("n_statements")), bounded(entry, fraction)])
        for entry in chosen(entries, deployment=None)
    ]
    caption = "Cohen's κ of people with the judges, the rules and each other"
    return table(caption, ["who", "responses", "statements", "κ"], rows)


def _pair(entry: Place) -> str:
    row = entry.value
    other = row["other"] if row["kind"] == row["other"] else f"{row['other']} ({row['kind']})"
    return f"{row['reviewer']} and {other}, {LAYERS[row['layer']]}"
