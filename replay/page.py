"""The document of ``comparison.json`` for people: a page, and a table for the terminal. Nothing is computed here."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final

from jinja2 import PackageLoader

from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.metrics.rates import BY_NAME
from auditor.report.templating import environment
from auditor.report.words import DASH, FLAGS, Entry, percent, points, signed
from replay.sides import STORED

#: What the table in the terminal shows; the page and the file have all.
_HEADLINES: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
#: Two lines each: the measure, and what it is a share of.
_HEADINGS: Final = {
    "ber_union_full": ("union,", "all"),
    "ber_sel_full": ("selection,", "all"),
    "ber_elab_full": ("elaboration,", "all"),
    "ber_union": ("union,", "both layers"),
    "ber_sel": ("selection,", "both layers"),
    "ber_elab": ("elaboration,", "both layers"),
    "ir": ("IR", ""),
    "dni": ("DNI", ""),
}
_LAYERS: Final = {"selection": SELECTION_LABELS, "elaboration": ELABORATION_LABELS}
_ORIGINS: Final = {"probe": "probes", "client": "client traffic"}


def render(document: Entry) -> bytes:
    """Render the page; the same document gives the same bytes."""
    templates = environment(PackageLoader("replay", "templates"))
    style = (resources.files("auditor.report") / "page" / "report.css").read_text(encoding="utf-8")
    page = templates.get_template("comparison.html.j2").render(
        document=document,
        style=style,
        headings=_HEADINGS,
        says={name: BY_NAME[name].says for name in _HEADINGS},
        origins=_ORIGINS,
        side=side_text,
        sides=_sides,
        difference=_cell,
        layers=_LAYERS,
        present=_present,
        flags_told=_flags_told(document),
        flags=_flags,
        counts=counts_text,
        percent=percent,
    )
    return page.encode("utf-8")


def table(document: Entry) -> Iterator[str]:
    """Write the headlines as lines of text."""
    for group in document["groups"]:
        by = group["by"]
        route = f" of {by['route']}" if by["route"] else ""
        task = f", first asked as {by['task']}" if by["task"] else ""
        rubric = "" if group["rubric"] == "statement" else f" ({group['rubric']})"
        yield f"{by['deployment']}: {_ORIGINS[by['origin']]}{route}{task}{rubric}"
        rows: list[tuple[str, ...]] = [("from", "to", "pairs", *_HEADLINES)]
        for pair in group["pairs"]:
            cells = [_cell(pair["metrics"][name]) for name in _HEADLINES]
            told = [" ".join(part for part in (cell["value"], cell["interval"]) if part) for cell in cells]
            rows.append((side_text(pair["first"]), side_text(pair["second"]), f"{pair['n_pairs']:,}", *told))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        yield from ("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        yield ""


def side_text(side: Entry) -> str:
    """Name a side."""
    if side["side"] != STORED:
        return str(side["side"])
    return f"{side['task']} (stored)" if side["task"] else "as the application asked"


def counts_text(counts: Mapping[str, int]) -> str:
    """List counts by reason, the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in ordered)


def _cell(entry: Entry) -> Mapping[str, str]:
    if "missing" in entry:
        return {"value": DASH, "interval": "", "told": entry["missing"]}
    bounds = f"[{signed(entry['low'])}, {signed(entry['high'])}]"
    told = f"{percent(entry['first'])} to {percent(entry['second'])}, {entry['n_pairs']:,} pairs, {entry['base']} base"
    if "bounds_only" in entry["flags"]:
        return {"value": "", "interval": f"{bounds} pp", "told": told}
    return {"value": points(entry["difference"]), "interval": bounds, "told": told}


def _flags(pair: Entry) -> list[str]:
    found = {flag: None for metric in pair["metrics"].values() for flag in metric.get("flags", ())}
    return [flag for flag in FLAGS if flag in found]


def _present(flips: Mapping[str, int], labels: Sequence[str]) -> list[str]:
    """Keep of the labels those that some answer has."""
    seen = {label for flip in flips for label in flip.split(">")}
    return [label for label in labels if label in seen]


def _flags_told(document: Entry) -> Mapping[str, str]:
    found = {flag for group in document["groups"] for pair in group["pairs"] for flag in _flags(pair)}
    return {flag: told for flag, told in FLAGS.items() if flag in found}


def _sides(group: Entry) -> list[Any]:
    first = group["pairs"][0]["first"]
    return [first, *(pair["second"] for pair in group["pairs"] if pair["first"]["side"] == STORED)]
