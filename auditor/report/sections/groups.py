"""The groups that the analysis was asked for, as far as a page can hold them."""

from typing import Final

from auditor.report.cells import choice
from auditor.report.part import Part, Section
from auditor.report.tables import SIZE_HEADS, Row, estimates, head, sizes, table
from auditor.report.words import by_text, yes_no

#: Groups that the page shows; all of them stand in analysis.json.
MAX_GROUPS: Final = 100
_MEASURES: Final = ("ber_union_full", "ber_sel", "ber_elab", "ber_union", "ir", "dni", "ir_over_union")


def section(part: Part) -> Section | None:
    """Show the groups, unless they are the deployments, which stand in the summary."""
    by = [str(name.value) for name in part.document.at("by")]
    groups = [entry for entry in part.entries("groups") if entry.value["by"]]
    told = [entry for entry in groups if any(not entry.at("metrics", name).reason for name in _MEASURES)]
    if not told or by == ["deployment"]:
        return None
    rows = [
        Row(
            name=by_text(entry.value["by"]),
            cells=[*sizes(entry), *estimates(entry, _MEASURES), choice(entry.at("sign_flip"), yes_no)],
        )
        for entry in told[:MAX_GROUPS]
    ]
    heads = ["group", *SIZE_HEADS, *map(head, _MEASURES), "DNI changes sides"]
    given = {"table": table("Groups with an estimate", heads, rows), "by": by, "cut": len(told) > MAX_GROUPS}
    return Section(name="groups", title="Groups", given=given)
