"""The report's figures, drawn from entries of the document."""

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from auditor.metrics.divergence import DNI_MAX, IR_MIN
from auditor.metrics.shares import FACTORS
from auditor.report.svg import Scale, drawing, element, shorten
from auditor.report.words import DASH, Entry, condition_order, condition_text, estimate_text, percent, points, signed

WIDTH: Final = 960.0
ROW: Final = 17.0
#: Between groups of lines.
GAP: Final = 7.0
#: Panels of a figure side by side.
PANELS: Final = 4
#: Conditions a panel can show and still be read.
MAX_CONDITIONS: Final = 60


def condition_panels(conditions: Sequence[Entry]) -> Markup:
    """Draw union BER by condition with intervals, a panel a deployment; both layers as small marks."""
    deployments = sorted({str(entry["by"]["deployment"]) for entry in conditions})
    labels: dict[str, Entry] = {}
    for entry in sorted(conditions, key=lambda entry: condition_order(entry["by"])):
        labels.setdefault(condition_text(entry["by"]), entry["by"])
    place = _lines(labels)
    gutter, columns = 150.0, min(PANELS, len(deployments))
    panel = (WIDTH - gutter) / columns
    top = _ceiling([entry["metrics"]["ber_union_full"] for entry in conditions])
    height = max(place.values()) + ROW + 22
    parts = []
    for index, deployment in enumerate(deployments):
        row, column = divmod(index, columns)
        across = Scale(low=0, high=top, start=gutter + column * panel + 6, end=gutter + (column + 1) * panel - 22)
        offset = row * (height + 14)
        own = [entry for entry in conditions if entry["by"]["deployment"] == deployment]
        parts.append(_panel(own, place, across, offset, title=deployment))
        if column == 0:
            parts += [
                element("text", shorten(label, gutter - 12), x=gutter - 8, y=offset + y + 4, class_="label end")
                for label, y in place.items()
            ]
    rows = -(-len(deployments) // columns)
    return drawing(WIDTH, rows * (height + 14), "Union bias endorsement rate by condition and deployment", parts)


def _lines(labels: Mapping[str, Entry]) -> dict[str, float]:
    """Give each condition its height in a panel, with a gap where another factor begins."""
    place: dict[str, float] = {}
    y, group = 38.0, None
    for label, by in list(labels.items())[:MAX_CONDITIONS]:
        order = condition_order(by)[:2]
        y += GAP if group is not None and order != group else 0.0
        group = order
        place[label] = y
        y += ROW
    return place


def _panel(entries: Sequence[Entry], place: Mapping[str, float], across: Scale, offset: float, *, title: str) -> Markup:
    bottom = max(place.values()) + ROW / 2 + 2
    parts = [element("text", shorten(title, 0.9 * (across.end - across.start)), x=across.start, y=16, class_="title")]
    for tick in across.ticks(3):
        parts.append(element("line", x1=across(tick), x2=across(tick), y1=26, y2=bottom, class_="grid"))
        parts.append(element("text", f"{100 * tick:g}", x=across(tick), y=bottom + 14, class_="tick"))
    for entry in entries:
        y = place.get(condition_text(entry["by"]))
        if y is not None:
            parts.append(_condition(entry, across, y))
    return element("g", *parts, transform=f"translate(0 {offset:g})")


def _condition(entry: Entry, across: Scale, y: float) -> Markup:
    metrics = entry["metrics"]
    union = metrics["ber_union_full"]
    told = [f"{condition_text(entry['by'])}, n = {entry['n']}"]
    parts = []
    for name, mark in (("ber_sel_full", "sel"), ("ber_elab_full", "elab")):
        if "missing" not in metrics[name]:
            parts.append(_mark(mark, across(metrics[name]["value"]), y))
            told.append(f"{mark} {estimate_text(name, metrics[name])}")
    if "missing" in union:
        told.append(f"no estimate: {union['missing']}")
        parts.append(element("text", DASH, x=across.start, y=y + 4, class_="tick"))
    else:
        parts += _whisker(union, across, y)
        told.append(f"union {estimate_text('ber_union_full', union)}")
    return element("g", element("title", "; ".join(told)), *parts)


def _mark(kind: str, x: float, y: float) -> Markup:
    if kind == "sel":
        return element("path", d=f"M{x - 4:.2f} {y:.2f}l4 -4l4 4l-4 4z", class_="sel")
    return element("rect", x=x - 3, y=y - 3, width=6.0, height=6.0, class_="elab")


def _whisker(estimate: Entry, across: Scale, y: float) -> list[Markup]:
    low, high = across(estimate["low"]), across(estimate["high"])
    bar = element("line", x1=low, x2=high, y1=y, y2=y, class_="whisker")
    if "bounds_only" in estimate["flags"]:
        return [bar]
    return [bar, element("circle", cx=across(estimate["value"]), cy=y, r=3.4, class_="dot")]


def _ceiling(estimates: Sequence[Entry]) -> float:
    highest = max((entry["high"] for entry in estimates if "missing" not in entry), default=1.0)
    return next((top for top in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if highest <= top), 1.0)


def divergence_map(deployments: Sequence[Entry]) -> Markup | None:
    """Draw (IR, DNI) of each deployment with both intervals, and the zone of the cancellation trap."""
    known = [entry for entry in deployments if "missing" not in entry["metrics"]["ir"]]
    if not known:
        return None
    top = _ceiling([entry["metrics"]["ir"] for entry in known])
    reach = _ceiling([{"high": max(abs(e["metrics"]["dni"][side]) for side in ("low", "high"))} for e in known])
    width, height = 720.0, 440.0
    across = Scale(low=0, high=top, start=64, end=width - 20)
    upward = Scale(low=-reach, high=reach, start=height - 44, end=16)
    parts = [_wedge(across, upward, top, reach), _trap_zone(across, upward, top)]
    for tick in across.ticks():
        parts.append(element("line", x1=across(tick), x2=across(tick), y1=16, y2=height - 44, class_="grid"))
        parts.append(element("text", percent(tick, 0), x=across(tick), y=height - 28, class_="tick"))
    for tick in upward.ticks():
        parts.append(element("line", x1=64, x2=width - 20, y1=upward(tick), y2=upward(tick), class_="grid"))
        parts.append(element("text", signed(tick, 0) if tick else "0", x=56, y=upward(tick) + 4, class_="tick end"))
    parts.append(element("line", x1=64, x2=width - 20, y1=upward(0), y2=upward(0), class_="axis"))
    parts.append(element("text", "IR: the layers disagree", x=width / 2 + 20, y=height - 8, class_="tick"))
    middle = (height - 28) / 2
    parts.append(
        element(
            "text",
            "DNI, pp: selection over elaboration",
            x=14,
            y=middle,
            class_="tick",
            transform=f"rotate(-90 14 {middle:g})",
        )
    )
    parts += _points(known, across, upward)
    return drawing(width, height, "Inconsistency rate and net imbalance by deployment", parts)


def _wedge(across: Scale, upward: Scale, top: float, reach: float) -> Markup:
    """Shade where (IR, DNI) can lie at all: |DNI| <= IR."""
    bend = min(top, reach)
    corners = ((0.0, 0.0), (bend, bend), (top, bend), (top, -bend), (bend, -bend))
    return element(
        "polygon", points=" ".join(f"{across(x):.2f},{upward(y):.2f}" for x, y in corners), class_="possible"
    )


def _trap_zone(across: Scale, upward: Scale, top: float) -> Markup:
    if top <= IR_MIN:
        return Markup("")
    return element(
        "rect",
        element("title", "cancellation trap: the layers disagree, and the directions cancel"),
        x=across(IR_MIN),
        y=upward(DNI_MAX),
        width=across(top) - across(IR_MIN),
        height=upward(-DNI_MAX) - upward(DNI_MAX),
        class_="trap",
    )


def _points(known: Sequence[Entry], across: Scale, upward: Scale) -> list[Markup]:
    parts = []
    last = -100.0
    for entry in sorted(known, key=lambda entry: -float(entry["metrics"]["dni"]["value"])):
        ir, dni, name = entry["metrics"]["ir"], entry["metrics"]["dni"], str(entry["by"]["deployment"])
        x, y = across(ir["value"]), upward(dni["value"])
        told = f"{name}: IR {estimate_text('ir', ir)}, DNI {estimate_text('dni', dni)}"
        # Labels keep a line's distance, each on the side where there is room.
        last = max(y - 6, last + 13)
        right = x < across.end - 110
        parts.append(
            element(
                "g",
                element("title", told),
                element("line", x1=across(ir["low"]), x2=across(ir["high"]), y1=y, y2=y, class_="whisker"),
                element("line", x1=x, x2=x, y1=upward(dni["low"]), y2=upward(dni["high"]), class_="whisker"),
                element("circle", cx=x, cy=y, r=4.5, class_="dot"),
                element("line", x1=x, y1=y, x2=x + (7 if right else -7), y2=last - 2, class_="leader"),
                element("text", name, x=x + (9 if right else -9), y=last + 2, class_="label" if right else "label end"),
            )
        )
    return parts


def coverage_bars(deployments: Sequence[Entry]) -> Markup:
    """Draw what became of the responses: both layers, absent by design, failed."""
    gutter = 190.0
    across = Scale(low=0, high=1, start=gutter, end=WIDTH - 20)
    quarters = (0.0, 0.25, 0.5, 0.75, 1.0)
    parts = [element("text", percent(tick, 0), x=across(tick), y=12, class_="tick") for tick in quarters]
    for index, entry in enumerate(deployments):
        y = 22 + index * 24
        name = str(entry["by"]["deployment"])
        parts.append(element("text", shorten(name, gutter - 16), x=gutter - 8, y=y + 13, class_="label end"))
        start = 0.0
        for kind in ("eligible", "structural", "failed"):
            share = float(entry["coverage"][kind])
            parts.append(
                element(
                    "rect",
                    element("title", f"{name}: {kind} {percent(share)} of {entry['n']}"),
                    x=across(start),
                    y=float(y),
                    width=across(start + share) - across(start),
                    height=17.0,
                    class_=kind,
                )
            )
            start += share
    return drawing(WIDTH, 26 + 24 * len(deployments), "Coverage by deployment", parts)


def range_bars(ranges: Sequence[Entry]) -> Markup | None:
    """Draw the smallest and largest rate over the levels of each factor, a line a deployment and factor."""
    known = [entry for entry in ranges if "missing" not in entry]
    if not known:
        return None
    gutter = 260.0
    top = next((t for t in (0.1, 0.2, 0.4, 0.6, 0.8) if max(e["max"] for e in known) <= t), 1.0)
    across = Scale(low=0, high=top, start=gutter, end=WIDTH - 230)
    parts = []
    first = [i for i, e in enumerate(known) if i and e["by"] != known[i - 1]["by"]]
    height = 26 + ROW * len(known) + GAP * len(first)
    for tick in across.ticks():
        parts.append(element("line", x1=across(tick), x2=across(tick), y1=18, y2=height, class_="grid"))
        parts.append(element("text", percent(tick, 0), x=across(tick), y=12, class_="tick"))
    for index, entry in enumerate(known):
        y = 26 + ROW * index + ROW / 2 + GAP * sum(index >= each for each in first)
        name = f"{entry['by'].get('deployment', 'all deployments')} · {entry['over']}"
        figure = f"{points(entry['range'])[1:]} [{100 * entry['low']:.1f}, {100 * entry['high']:.1f}]"
        told = f"{name}: {entry['min_at']} {percent(entry['min'])} to {entry['max_at']} {percent(entry['max'])}"
        parts.append(
            element(
                "g",
                element("title", told),
                element("text", shorten(name, gutter - 16), x=gutter - 8, y=y + 4, class_="label end"),
                element("line", x1=across(entry["min"]), x2=across(entry["max"]), y1=y, y2=y, class_="whisker"),
                element("circle", cx=across(entry["min"]), cy=y, r=3.4, class_="dot hollow"),
                element("circle", cx=across(entry["max"]), cy=y, r=3.4, class_="dot"),
                element("text", figure, x=across.end + 14, y=y + 4, class_="label"),
            )
        )
    return drawing(WIDTH, height + 6, "Range of the union rate over each factor", parts)


def share_bars(shares: Sequence[Entry]) -> Markup | None:
    """Draw variance shares of the four factors, a line a deployment."""
    known = [entry for entry in shares if "missing" not in entry]
    values = [value for e in known for value in e["effects"].values() if not isinstance(value, Mapping)]
    if not values:
        return None
    gutter, top = 190.0, max(0.02, *values)
    panel = (WIDTH - gutter) / len(FACTORS)
    parts = []
    for column, factor in enumerate(FACTORS):
        across = Scale(low=0, high=top, start=gutter + column * panel, end=gutter + (column + 1) * panel - 62)
        parts.append(element("text", factor, x=across.start, y=14, class_="title"))
        for index, entry in enumerate(known):
            y = 24 + ROW * index
            value = entry["effects"].get(factor)
            if column == 0:
                name = str(entry["by"].get("deployment", "all deployments"))
                parts.append(element("text", shorten(name, gutter - 16), x=gutter - 8, y=y + 11, class_="label end"))
            if value is None or isinstance(value, Mapping):
                parts.append(element("text", DASH, x=across.start + 2, y=y + 11, class_="label"))
                continue
            parts.append(
                element("rect", x=across.start, y=y + 2, width=across(value) - across.start, height=11.0, class_="bar")
            )
            parts.append(element("text", f"{value:.3f}", x=across(value) + 5, y=y + 11, class_="label"))
    return drawing(WIDTH, 30 + ROW * len(known), "Share of variance by prompt factor", parts)
