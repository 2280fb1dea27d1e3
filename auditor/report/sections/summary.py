"""The summary: the headlines in words, a line a deployment, and what may not be claimed."""

from collections.abc import Iterator
from typing import Final

from auditor.report.cells import Cell, bounded, choice, count, decimal, estimate, gain, share, word
from auditor.report.part import Part, Section, chosen, name_of
from auditor.report.places import Place
from auditor.report.tables import SIZE_HEADS, Row, Table, estimates, head, sizes, table
from auditor.report.words import FLAGS, listed

HEADLINES: Final = ("ber_union_full", "ber_union", "ir", "dni")
#: Measures whose flags stand beside a deployment.
_FLAGGED: Final = ("ber_union_full", "ir", "dni")
_TOLD: Final = (*HEADLINES, "ber_cor", "ber_sel")


def section(part: Part) -> Section:
    """Say what was found."""
    given = {
        "pooled": {name: estimate(part.pooled.at("metrics", name), name) for name in _TOLD},
        "n": count(part.pooled.at("n")),
        "eligible": share(part.pooled.at("coverage", "eligible")),
        "extremes": _extremes(part),
        "swing": _swing(part),
        "shares": _shares(part),
        "traps": _traps(part),
        "table": _table(part),
        "caveats": list(_caveats(part)),
    }
    return Section(name="summary", title="Summary", given=given)


def _extremes(part: Part) -> list[tuple[str, Cell]]:
    """Find the deployments with the lowest and with the highest headline, where there are several."""
    known = [entry for entry in part.entries("deployments") if not entry.at("metrics", "ber_union_full").reason]
    known.sort(key=lambda entry: float(entry.at("metrics", "ber_union_full", "value").value))
    ends = (known[0], known[-1]) if len(known) > 1 else ()
    return [(name_of(entry), estimate(entry.at("metrics", "ber_union_full"), "ber_union_full")) for entry in ends]


def _swing(part: Part) -> dict[str, Cell] | None:
    """Find how far the pooled headline depends on the task."""
    for entry in chosen(part.entries("horizontal"), by={}, metric="ber_union_full", over="task"):
        return {
            "range": bounded(entry, gain, "range"),
            "min": share(entry.at("min")),
            "min_at": choice(entry.at("min_at")),
            "max": share(entry.at("max")),
            "max_at": choice(entry.at("max_at")),
        }
    return None


def _shares(part: Part) -> list[tuple[str, Cell]]:
    """Find what the task and what the choice of deployment explain of the headline's variance."""
    rows = part.entries("eta_squared")
    own = chosen(rows, by={}, outcome="ber_union_full", design="oat", weights="responses")
    places = [("the task", entry.at("effects", "task")) for entry in own]
    other = chosen(rows, by={}, outcome="ber_union_full", design="deployment")
    places += [("the choice of deployment", entry.at("effects", "deployment")) for entry in other]
    return [(name, decimal(place)) for name, place in places if not place.reason]


def _traps(part: Part) -> list[tuple[str, str]]:
    """Name the deployments in the cancellation trap, by its state."""
    states: dict[str, list[str]] = {"confirmed": [], "possible": []}
    for entry in part.entries("deployments"):
        if (state := entry.value["cancellation_trap"]) in ("confirmed", "possible"):
            states[state].append(name_of(entry))
    return [(state, listed(names)) for state, names in states.items() if names]


def _table(part: Part) -> Table | None:
    """Lay out the headlines; the flags have a column where there are any."""
    lines = [(name_of(entry), entry, "") for entry in part.entries("deployments")] + [
        ("all rows", part.pooled, "pooled")
    ]
    flagged = any(flags_of(entry) for _, entry, _ in lines)
    heads = ["deployment", *SIZE_HEADS, *map(head, HEADLINES), "cancellation trap", *(["flags"] if flagged else [])]
    rows = []
    for name, entry, kind in lines:
        flags = word(", ".join(sorted(flags_of(entry))).replace("_", " "), "flags")
        cells = [*sizes(entry), *estimates(entry, HEADLINES), _trap(entry.at("cancellation_trap"))]
        rows.append(Row(name=name, cells=[*cells, flags] if flagged else cells, kind=kind))
    return table("Headlines by deployment", heads, rows)


def _trap(place: Place) -> Cell:
    cell = choice(place)
    return cell.marked("alarm") if cell.text in {"confirmed", "possible"} else cell


def flags_of(entry: Place) -> set[str]:
    """Collect an entry's flags and those of its headlines."""
    named = [entry.at("metrics", name, "flags") for name in _FLAGGED]
    return {str(flag.value) for flags in (entry.at("flags"), *named) for flag in flags}


def _caveats(part: Part) -> Iterator[str]:
    """List what these rows do not allow to be said."""
    found: dict[str, list[str]] = {}
    for entry in part.entries("deployments"):
        said = [FLAGS.get(flag, flag) for flag in sorted(flags_of(entry))]
        if reason := entry.at("metrics", "ir").reason:
            said.append(f"nothing on whether the layers agree, since {reason}")
        for line in said:
            found.setdefault(line, []).append(name_of(entry))
    for line, names in found.items():
        yield f"{'Every deployment' if len(names) == len(part.deployments) else listed(names)}: {line}."
    if not part.is_varied:
        yield "Nothing on other ways of asking: every deployment was asked under one condition."
    if reason := part.reason("agreement"):
        yield f"No ranking of the deployments: {reason}."
