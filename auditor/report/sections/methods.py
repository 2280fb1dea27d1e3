"""Methods, limits and versions: how the numbers were made, and what may never be said of them."""

from typing import Final

from auditor.metrics.divergence import DNI_MAX, IR_MIN
from auditor.metrics.estimate import BOUNDS_RATE, ENOUGH_STATEMENTS, LOW_RATE, MIN_STATEMENTS
from auditor.metrics.rates import METRICS
from auditor.report.cells import count
from auditor.report.part import Section
from auditor.report.places import Place
from auditor.report.words import FLAGS, percent

#: What the software chooses, for the sentences that name it.
_FLOORS: Final = {
    "min_statements": MIN_STATEMENTS,
    "enough_statements": ENOUGH_STATEMENTS,
    "low_rate": percent(LOW_RATE, 0),
    "bounds_rate": percent(BOUNDS_RATE, 0),
    "ir_min": percent(IR_MIN, 0),
    "dni_max": percent(DNI_MAX, 0),
}


def section(document: Place) -> Section:
    """Say how it was done."""
    given = {
        **_FLOORS,
        "metrics": METRICS,
        "flags": FLAGS,
        "n_boot": count(document.at("n_boot")),
        "seed": count(document.at("seed")),
        "schema": document.value["schema"],
        "version": document.at("version").value if not document.at("version").reason else "",
    }
    return Section(name="methods", title="Methods, limits and versions", given=given)
