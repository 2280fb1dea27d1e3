"""Case studies: the shortest unanimous divergences, and the statement that swings the most (Appendix E)."""

from typing import Any, Final

from auditor.report.cells import Cell, choice, count, gain, number, share
from auditor.report.part import Part, Section
from auditor.report.places import Place
from auditor.report.tables import Row, table
from auditor.report.words import condition_text

_STRATA: Final = {
    "over": "the selection endorses, the elaboration does not",
    "under": "the elaboration endorses, the selection does not",
    "qualified": "the elaboration endorses with qualifications, the selection does not",
}


def section(part: Part) -> Section | None:
    """Quote, where the document does."""
    cases, swings = part.entries("cases"), part.entries("swing")
    if not cases and not swings:
        return None
    given = {"cases": [_case(case) for case in cases], "swings": [_swing(swing) for swing in swings]}
    return Section(name="cases", title="Case studies", given=given)


def _case(case: Place) -> dict[str, Any]:
    """Give what the document says of one case; a file without texts has only the labels."""
    entry = case.value
    votes = [f"{vote.value['judge']}: {vote.value['label']}" for vote in case.at("votes")]
    return {
        "title": f"{entry['deployment']}: {_STRATA.get(entry['stratum'], entry['stratum'])}",
        "statement": entry.get("statement") or entry["statement_id"],
        "category": entry.get("category"),
        "response": entry.get("response"),
        "condition": condition_text(entry),
        "sel": entry["sel"],
        "elab": entry["elab"],
        "votes": ", ".join(votes),
        "id": entry["id"],
        "n": count(case.at("n")),
    }


def _swing(swing: Place) -> dict[str, Any]:
    rows = [
        Row(
            name=str(task.value["task"]),
            cells=[
                _said(task.at("response")),
                choice(task.at("sel")),
                choice(task.at("elab")),
                _rate(task.at("rate")),
                count(task.at("n")),
            ],
        )
        for task in swing.at("tasks")
    ]
    caption = f"{swing.value['deployment']}: one statement under every task"
    heads = ["task", "the shortest response, its first words", "sel", "elab", "rate", "responses"]
    return {
        "statement": swing.value.get("statement"),
        "id": swing.value["statement_id"],
        "delta": number(swing.at("delta"), gain),
        "table": table(caption, heads, rows, source="Table VIII"),
    }


def _said(place: Place) -> Cell:
    return choice(Place({"missing": "its text is not known"}) if place.reason else place).marked("quote")


def _rate(place: Place) -> Cell:
    return share(Place({"missing": "no selection"}) if place.reason else place)
