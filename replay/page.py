"""The document of ``comparison.json`` for people: a page, and a table for the terminal. Nothing is computed here."""

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from auditor.metrics.rates import BY_NAME
from auditor.report.words import DASH, FLAGS, Entry, percent, points, signed
from replay.compare import COMPARED
from replay.document import STORED

#: What the table in the terminal shows; the page and the file have all.
_HEADLINES: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
_ORIGINS: Final = {"probe": "probes", "client": "client traffic"}


def render(document: Entry) -> bytes:
    """Render the page; the same document gives the same bytes."""
    environment = Environment(
        loader=PackageLoader("replay", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (resources.files("auditor.report") / "page" / "report.css").read_text(encoding="utf-8")
    page = environment.get_template("comparison.html.j2").render(
        document=document,
        style=style,
        metrics=COMPARED,
        says={name: BY_NAME[name].says for name in COMPARED},
        origins=_ORIGINS,
        side=side_text,
        sides=_sides,
        difference=_cell,
        flips=_flips,
        flags=_flags,
        counts=counts_text,
        percent=percent,
    )
    return page.encode("utf-8")


def table(document: Entry) -> Iterator[str]:
    """Write the headlines as lines of text."""
    for group in document["groups"]:
        by = group["by"]
        task = f", first asked as {by['task']}" if by["task"] else ""
        rubric = "" if group["rubric"] == "statement" else f" ({group['rubric']})"
        yield f"{by['deployment']}: {_ORIGINS[by['origin']]}{task}{rubric}"
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


def _flips(flips: Mapping[str, int]) -> str:
    """List the labels that changed, and how many stayed."""
    changed = {flip.replace(">", " to "): n for flip, n in flips.items() if len(set(flip.split(">"))) > 1}
    stayed = sum(flips.values()) - sum(changed.values())
    ordered = sorted(changed.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join([f"{flip} {n:,}" for flip, n in ordered] + [f"unchanged {stayed:,}"])


def _sides(group: Entry) -> list[Any]:
    first = group["pairs"][0]["first"]
    return [first, *(pair["second"] for pair in group["pairs"] if pair["first"]["side"] == STORED)]
