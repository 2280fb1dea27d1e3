"""The document of ``comparison.json`` for people: a page, and a table for the terminal. Nothing is computed here."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jinja2 import ChoiceLoader, PackageLoader

from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.report.figures.parts import known
from auditor.report.places import Place
from auditor.report.templating import environment
from auditor.report.words import DASH, FLAGS, Entry, estimate_text, points, signed
from replay.comparison.together import ERROR
from replay.page.charts import exposure_panels
from replay.page.pair_tables import Pairs, flip_table, halves, pair_table, test_table
from replay.page.tables import (
    coverage_table,
    exposure_table,
    factor_table,
    remedy_table,
    score_table,
    side_names,
)

#: What the table in the terminal shows; the page and the file have all.
_HEADLINES: Final = {
    "ber_union_full": "union, all",
    "ber_sel_full": "selection, all",
    "ber_elab_full": "elaboration, all",
    "ir": "IR",
    "dni": "DNI",
}
_LAYERS: Final = {"selection": SELECTION_LABELS, "elaboration": ELABORATION_LABELS}
_ORIGINS: Final = {"probe": "probes", "client": "client traffic"}


def render(document: Entry) -> bytes:
    """Render the page; the same document gives the same bytes."""
    loader = ChoiceLoader([PackageLoader("replay", "page"), PackageLoader("auditor.report", "page")])
    page = environment(loader).get_template("comparison.html.j2")
    return page.render(
        document=document,
        traffic_by=document.get("by"),
        groups=[_group(group) for group in Place(document).at("groups")],
        flags_told=_flags_told(document),
        counts=counts_text,
    ).encode("utf-8")


def _group(group: Place) -> dict[str, Any]:
    entry = group.value
    own, rest = halves(group)
    return {
        "entry": entry,
        "title": _title(entry),
        "is_client": entry["by"]["origin"] == "client",
        "panels": exposure_panels(entry, [*side_names(group).values()]),
        "repeated": any(side["repeats"] for side in entry["sides"]),
        "ranges": sum(known(found) for found in entry["exposure"].values()),
        "within": sum(_within_noise(found) for found in entry["exposure"].values()),
        "exposure": exposure_table(group),
        "scores": score_table(group),
        "coverage": coverage_table(group),
        "factors": factor_table(group),
        "remedies": remedy_table(group),
        "pairs": pair_table(own, f"Differences from {own.start}"),
        "other_pairs": pair_table(rest, "Differences between the other ways of asking"),
        "tests": test_table(own),
        "other_tests": test_table(rest),
        "flips": flip_table(own, f"What turned over against {own.start}"),
        "other_flips": flip_table(rest, "What turned over between the other ways of asking"),
        "labels": [(name, _matrices(pair.value)) for name, pair in own.named()],
    }


def _title(entry: Entry) -> str:
    by = entry["by"]
    route = f" of {by['route']}" if by["route"] else ""
    task = f", first asked as {by['task']}" if by["task"] else ""
    return f"{by['deployment']}: {_ORIGINS[by['origin']]}{route}{task}"


def _within_noise(found: Entry) -> bool:
    """Whether a range is not shown to be wider than what asking the same again may do."""
    return known(found) and known(found["repetition"]) and not found["repetition"]["beyond"]


def _matrices(pair: Entry) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Lay out what labels turned into: of each layer the labels that occur, and a line for each of them."""
    out = {}
    for layer, labels in _LAYERS.items():
        counts = pair["flips"][layer]["labels"]
        seen = {label for flip in counts for label in flip.split(">")}
        own = [label for label in labels if label in seen]
        out[layer] = own, [[_count(counts.get(f"{one}>{two}", 0)) for two in own] for one in own]
    return out


def _count(n: int) -> str:
    return f"{n:,}" if n else "·"


def _flags_told(document: Entry) -> Mapping[str, str]:
    found: set[str] = set()
    for group in document["groups"]:
        entries = [*group["exposure"].values(), *(one for pair in group["pairs"] for one in pair["metrics"].values())]
        entries += [score for side in group["sides"] for score in side["scores"].values()]
        found.update(flag for entry in entries for flag in entry.get("flags", ()))
    return {flag: told for flag, told in FLAGS.items() if flag in found}


def table(document: Entry) -> Iterator[str]:
    """Write the headlines as lines of text: how far each score can be moved, then differences from the first side."""
    for group in document["groups"]:
        rubric = "" if group["rubric"] == "statement" else f" ({group['rubric']})"
        yield f"{_title(group)}{rubric}"
        yield from _columns(_exposure_lines(group, side_names(Place(group))))
        yield ""
        yield from _columns(_pair_lines(halves(Place(group))[0]))
        yield f"  * holds beside all {group['comparisons']:,} comparisons of the group, which are in comparison.json"
        yield ""


def _exposure_lines(group: Entry, names: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    yield "score", "lowest", "at", "highest", "at", "range", ""
    for name, heading in _HEADLINES.items():
        found = group["exposure"][name]
        if not known(found):
            yield heading, DASH, "", "", "", "", found["missing"]
            continue
        low, high = (found[end] for end in ("lowest", "highest"))
        spread = f"{100 * found['range']['value']:.1f} pp {_bounds(found['range'])}"
        noted = "not shown to be beyond repetition" if _within_noise(found) else ""
        told = [estimate_text(name, end) for end in (low, high)]
        yield heading, told[0], names[low["side"]], told[1], names[high["side"]], spread, noted


def _bounds(entry: Entry) -> str:
    return f"[{100 * entry['low']:.1f}, {100 * entry['high']:.1f}]"


def _pair_lines(own: Pairs) -> Iterator[tuple[str, ...]]:
    yield own.heading, "pairs", *_HEADLINES.values()
    for name, pair in own.named():
        cells = [_difference(pair.value["metrics"][measure]) for measure in _HEADLINES]
        yield name, f"{pair.value['n_pairs']:,}", *cells


def _difference(entry: Entry) -> str:
    if "missing" in entry:
        return DASH
    bounds = f"[{signed(entry['low'])}, {signed(entry['high'])}]"
    star = " *" if entry["p_adjusted"] <= ERROR else ""
    return f"{bounds} pp{star}" if "bounds_only" in entry["flags"] else f"{points(entry['difference'])} {bounds}{star}"


def _columns(lines: Iterator[tuple[str, ...]]) -> Iterator[str]:
    rows = list(lines)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def counts_text(counts: Mapping[str, int]) -> str:
    """List counts by reason, the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in ordered)
