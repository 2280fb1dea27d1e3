"""Draw the console's charts as inline SVG. Colours are classes of ``charts.css``: light and dark styles apply."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from auditor.report.svg import Scale, one_line, round_ticks, shorten, svg_element, text_width
from auditor.report.wording import percent, signed

#: Width of the interval in a table's row, in pixels.
BAR: Final = 170.0
_EDGE: Final = 4.0
#: Width of charts that fit a phone; above it lies that of each chart on a desktop.
_PHONE: Final = 350.0
#: Pixels between the dates of a chart of days.
_DATE: Final = 100.0
#: Points that are named beside their mark; with more the names would overlap.
_NAMED: Final = 12
#: Pixels that a name beside a mark may take.
_NAME: Final = 170.0
#: Size of texts, as in ``charts.css``.
_SIZE: Final = 11.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ChartInterval:
    """A value with its 95 % interval; without the value only the interval is reliable."""

    value: float | None
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A mark of a plane, which leads to an address."""

    name: str
    x: ChartInterval
    y: ChartInterval
    text: str  #: shown on hover
    address: str
    kind: str = ""  #: class of ``charts.css``


def interval_bar(found: ChartInterval, low: float, high: float, label: str) -> Markup:
    """Draw one interval as the row of a table; all rows of the table have the same scale.

    Parameters
    ----------
    found
        What is drawn.
    low, high
        Ends of the scale. Where it passes 0 there is a line at 0.
    label
        For readers who do not see it.
    """
    scale = Scale(low=low, high=high, start=_EDGE, end=BAR - _EDGE)
    left, right = _ends(scale, found)
    zero = mark = ""
    if low < 0 < high:
        zero = f'<line x1="{scale.at(0):g}" x2="{scale.at(0):g}" y1="1" y2="17" class="zero"></line>'
    if found.value is not None:
        mark = f'<circle cx="{scale.at(found.value):g}" cy="9" r="3.5" class="mark"></circle>'
    named = f'role="img" aria-label="{escape(one_line(label))}"' if label else 'aria-hidden="true"'
    # There may be hundreds: written in one piece, which takes a quarter of the time.
    return Markup(  # noqa: S704 -- every text in it is escaped
        f'<svg class="chart bar" width="{BAR:g}" height="18" viewBox="0 0 {BAR:g} 18" {named}>'
        f'<line x1="{_EDGE:g}" x2="{BAR - _EDGE:g}" y1="9" y2="9" class="axis"></line>{zero}'
        f'<line x1="{left:g}" x2="{right:g}" y1="9" y2="9" class="interval"></line>{mark}</svg>'
    )


def interval_axis(low: float, high: float, *, change: bool = False) -> Markup:
    """Draw the numbers of the scale of ``interval_bar``, for the head of its column."""
    scale = Scale(low=low, high=high, start=_EDGE, end=BAR - _EDGE)
    inner = []
    for tick in (low, 0.0, high) if low < 0 < high else (low, (low + high) / 2, high):
        anchor = "start" if tick == low else "end" if tick == high else "middle"
        text = signed(tick, 0) if change and tick else f"{100 * tick:g}"
        inner.append(svg_element("text", text, x=scale.at(tick), y=12, class_="tick", text_anchor=anchor))
    return _svg(BAR, 16, "", inner, "bar")


def divergence_plane(points: Sequence[Point], label: str) -> Markup:
    """Draw points at their IR (across) and DNI (up), with intervals; |DNI| cannot exceed IR, so that part is shaded."""
    return _for_each_screen(lambda width: _plane(points, label, width), 560.0)


def _for_each_screen(draw: Callable[[float], Markup], width: float) -> Markup:
    """Draw a chart for desktops and the same for phones; ``charts.css`` shows the one that fits."""
    both = Markup('<div class="desktop">{}</div><div class="phone">{}</div>')
    return both.format(draw(width), draw(_PHONE))


def _plane(points: Sequence[Point], label: str, width: float) -> Markup:
    height, left, right, top, bottom = 380.0, 44.0, 14.0, 14.0, 40.0
    highest = max((point.x.high for point in points), default=0.2)
    reach = max([0.05, *(abs(end) for point in points for end in (point.y.low, point.y.high))])
    across = Scale(low=0, high=min(1.0, max(0.1, highest * 1.05)), start=left, end=width - right)
    up = Scale(low=-reach * 1.1, high=reach * 1.1, start=height - bottom, end=top)
    corner = min(across.high, up.high)
    inner = []
    for sign in (1, -1):
        edge = [(0, sign * up.high), (0, 0), (corner, sign * corner), (corner, sign * up.high)]
        shape = " ".join(f"{across.at(x)},{up.at(y)}" for x, y in edge)
        inner.append(svg_element("polygon", points=shape, class_="impossible"))
    inner += _grid(across, up)
    inner.append(
        svg_element(
            "text", "IR: the layers disagree, %", x=width - right, y=height - 6, class_="name", text_anchor="end"
        )
    )
    inner.append(svg_element("text", "DNI, points", x=left + 6, y=top + 10, class_="name"))
    # The names come last, so that no mark hides them.
    inner += [_mark(point, across, up) for point in points]
    if len(points) <= _NAMED:
        inner += _names(points, across, up)
    return _svg(width, height, label, inner, "plane")


def _grid(across: Scale, up: Scale) -> Iterator[Markup]:
    for tick in round_ticks(across.low, across.high, 5):
        x = across.at(tick)
        yield svg_element("line", x1=x, x2=x, y1=up.end, y2=up.start, class_="grid")
        yield svg_element("text", f"{100 * tick:g}", x=x, y=up.start + 16, class_="tick", text_anchor="middle")
    for tick in round_ticks(up.low, up.high, 4):
        y = up.at(tick)
        yield svg_element("line", x1=across.start, x2=across.end, y1=y, y2=y, class_="zero" if tick == 0 else "grid")
        text = signed(tick, 0) if tick else "0"
        yield svg_element("text", text, x=across.start - 6, y=y + 4, class_="tick", text_anchor="end")


def _mark(point: Point, across: Scale, up: Scale) -> Markup:
    x, y = across.at(point.x.value or 0), up.at(point.y.value or 0)
    left, right, low, high = (f"{end:g}" for end in (*_ends(across, point.x), *_ends(up, point.y)))
    kind = escape(f"mark {point.kind}".strip())
    # There may be hundreds: written in one piece, which takes a quarter of the time.
    return Markup(  # noqa: S704 -- every text in it is escaped
        f'<a href="{escape(point.address)}" aria-label="{escape(one_line(point.text))}">'
        f"<title>{escape(point.text)}</title>"
        f'<line x1="{left}" x2="{right}" y1="{y:g}" y2="{y:g}" class="whisker"></line>'
        f'<line x1="{x:g}" x2="{x:g}" y1="{low}" y2="{high}" class="whisker"></line>'
        f'<circle cx="{x:g}" cy="{y:g}" r="4.5" class="{kind}"></circle></a>'
    )


def _names(points: Sequence[Point], across: Scale, up: Scale) -> Iterator[Markup]:
    """Write each name beside its mark, where it covers the fewest marks and other names."""
    marks = [(across.at(point.x.value or 0), up.at(point.y.value or 0)) for point in points]
    taken = [_Box(x - 5, y - 5, x + 5, y + 5) for x, y in marks]
    for point, (x, y) in zip(points, marks, strict=True):
        text = shorten(point.name, _NAME, _SIZE)
        width = text_width(text, _SIZE)
        places = [_Box(left, base - 10, left + width, base + 2) for left, base in _beside(x, y, width)]
        inside = [place for place in places if across.start <= place.left and place.right <= across.end]
        best = min(inside or places, key=lambda place: sum(place.meets(other) for other in taken))
        taken.append(best)
        yield _text(text, best.left, best.bottom - 2)


def _beside(x: float, y: float, width: float) -> Iterator[tuple[float, float]]:
    """Yield where a text beside a mark may begin: to the right and left of it, above and below its interval."""
    for left in (x + 8, x - 8 - width):
        for base in (y - 6, y + 14):
            yield left, base


class _Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Day:
    """The estimate of one day."""

    day: date
    found: ChartInterval
    text: str  #: shown on hover
    address: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened on a day: a release, or an alarm."""

    day: date
    name: str
    address: str
    kind: str  #: class of ``charts.css``: ``release`` or ``alarm``


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceDays:
    """The days and the rate that a deployment is compared with."""

    since: date
    until: date
    rate: float | None


def time_course(days: Sequence[Day], reference: ReferenceDays | None, events: Sequence[Event], label: str) -> Markup:
    """Draw the estimates of days with their intervals, the reference as a band of days and a line, and events."""
    return _for_each_screen(lambda width: _course(days, reference, events, label, width), 760.0)


def _course(
    days: Sequence[Day], reference: ReferenceDays | None, events: Sequence[Event], label: str, width: float
) -> Markup:
    height, left, right, top, bottom = 280.0, 34.0, 14.0, 40.0, 34.0
    moments = [one.day for one in days] + [one.day for one in events]
    if reference is not None:
        moments += [reference.since, reference.until]
    first, last = min(moments), max(moments)
    across = Scale(low=first.toordinal() - 0.5, high=last.toordinal() + 0.5, start=left, end=width - right)
    highest = max([0.05, *(one.found.high for one in days)])
    up = Scale(low=0, high=min(1.0, highest * 1.05), start=height - bottom, end=top)
    inner: list[Markup] = []
    if reference is not None:
        x1, x2 = across.at(reference.since.toordinal() - 0.5), across.at(reference.until.toordinal() + 0.5)
        inner.append(
            svg_element("rect", x=x1, y=top, width=round(x2 - x1, 1), height=up.start - top, class_="reference")
        )
        inner.append(svg_element("text", "reference", x=x1 + 4, y=top + 12, class_="name"))
    for tick in round_ticks(0, up.high, 4):
        y = up.at(tick)
        inner.append(svg_element("line", x1=left, x2=width - right, y1=y, y2=y, class_="grid"))
        inner.append(svg_element("text", f"{100 * tick:g}", x=left - 6, y=y + 4, class_="tick", text_anchor="end"))
    inner += _dates(first, last, across, up)
    if reference is not None and reference.rate is not None:
        y = up.at(reference.rate)
        inner.append(svg_element("line", x1=left, x2=width - right, y1=y, y2=y, class_="rate"))
    inner += [_event(one, across, up, place) for place, one in enumerate(events)]
    inner += [_day(one, across, up) for one in days]
    return _svg(width, height, label, inner, "course")


def _dates(first: date, last: date, across: Scale, up: Scale) -> Iterator[Markup]:
    shown_at_most = (across.end - across.start) / _DATE
    step = max(1, ceil((last - first).days / shown_at_most))
    for ordinal in range(first.toordinal(), last.toordinal() + 1, step):
        shown = f"{date.fromordinal(ordinal):%d %b}"
        yield svg_element("text", shown, x=across.at(ordinal), y=up.start + 18, class_="tick", text_anchor="middle")


def _day(one: Day, across: Scale, up: Scale) -> Markup:
    x = across.at(one.day.toordinal())
    inner = [
        svg_element("title", one.text),
        svg_element("line", x1=x, x2=x, y1=up.at(one.found.low), y2=up.at(one.found.high), class_="interval"),
    ]
    if one.found.value is not None:
        inner.append(svg_element("circle", cx=x, cy=up.at(one.found.value), r=4, class_="mark"))
    return svg_element("a", Markup("").join(inner), href=one.address, aria_label=one_line(one.text))


def _event(one: Event, across: Scale, up: Scale, place: int) -> Markup:
    x = across.at(one.day.toordinal())
    right = x < across.end - 120
    named = shorten(one.name, 150)
    inner = [
        svg_element("line", x1=x, x2=x, y1=up.end - 4, y2=up.start, class_=f"event {one.kind}"),
        _text(named, x + (4 if right else -4), 12 + 12 * (place % 3), one.kind, anchor="start" if right else "end"),
    ]
    return svg_element("a", Markup("").join(inner), href=one.address, aria_label=one_line(f"{one.day}: {one.name}"))


def dot_strip(values: Sequence[tuple[float, str]], marked: Iterable[tuple[float, str]], label: str) -> Markup:
    """Draw a distribution: a dot for each value, and named lines for some values.

    Parameters
    ----------
    values
        Shares in [0, 1], each with its text for hovering.
    marked
        Shares with a short name.
    label
        For readers who do not see it.
    """
    named = list(marked)
    return _for_each_screen(lambda width: _strip(values, named, label, width), 760.0)


def _strip(values: Sequence[tuple[float, str]], named: Sequence[tuple[float, str]], label: str, width: float) -> Markup:
    height, left, right = 92.0, 14.0, 14.0
    top = min(1.0, max([0.05, *(value for value, _ in values), *(value for value, _ in named)]) * 1.05)
    across = Scale(low=0, high=top, start=left, end=width - right)
    base = height - 26
    inner = [svg_element("line", x1=left, x2=width - right, y1=base, y2=base, class_="axis")]
    for tick in round_ticks(0, top, 6 if width > _PHONE else 3):
        text = percent(tick, 0) if tick else "0"
        inner.append(svg_element("text", text, x=across.at(tick), y=height - 8, class_="tick", text_anchor="middle"))
    for place, (value, name) in enumerate(named):
        x = across.at(value)
        inner.append(svg_element("line", x1=x, x2=x, y1=18, y2=base, class_="rate"))
        right = x < width / 2
        inner.append(_text(name, x + (3 if right else -3), 14.0 + 12 * place, anchor="start" if right else "end"))
    stacked: dict[int, int] = {}
    for value, text in sorted(values):
        x = across.at(value)
        place = round(x / 8)
        stacked[place] = stacked.get(place, 0) + 1
        y = base - 1 - 7 * stacked[place] % 56
        inner.append(svg_element("circle", svg_element("title", text), cx=x, cy=y, r=3.5, class_="mark"))
    return _svg(width, height, label, inner, "strip")


def _text(text: str, x: float, y: float, kind: str = "", *, anchor: str = "start") -> Markup:
    return svg_element("text", text, x=x, y=y, class_=f"name {kind}".strip(), text_anchor=anchor)


def _svg(width: float, height: float, label: str, inner: Iterable[Markup], kind: str) -> Markup:
    # A drawing with links is a group for screen readers: with the role of an image they would not find the links.
    parts = list(inner)
    role = "group" if any("<a " in part for part in parts) else "img"
    named = {"role": role, "aria_label": one_line(label)} if label else {"aria_hidden": "true"}
    box = f"0 0 {width:g} {height:g}"
    return svg_element(
        "svg", Markup("").join(parts), class_=f"chart {kind}", width=width, height=height, viewBox=box, **named
    )


def _ends(scale: Scale, interval: ChartInterval) -> tuple[float, float]:
    """Return the pixels of an interval's ends."""
    return scale.at(interval.low), scale.at(interval.high)
