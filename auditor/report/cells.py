"""What a page prints of a document: a value as text, together with its place.

A cell with a number is made from a place alone, so that no page can print a number that its document does not hold.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from auditor.report.places import Place
from auditor.report.words import DASH, estimate_parts, percent, points, signed

#: Below it a p value is not told apart.
SMALL_P: Final = 0.001


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """Text for one cell of a table, or for a place within a sentence."""

    text: str
    under: tuple[str, ...] = ()  #: further lines: an interval, a base
    path: str = ""  #: where the document says it; several places stand side by side
    told: str = ""  #: what it rests on, for who points at it
    reason: str = ""  #: why there is no value
    kind: str = "num"  #: class of the style sheet

    @property
    def is_text(self) -> bool:
        """Whether it holds words."""
        return not self.kind.startswith("num")

    def marked(self, kind: str) -> Self:
        """Give it another class beside its own."""
        return replace(self, kind=f"{self.kind} {kind}")

    def above(self, line: "Cell", form: str = "{}") -> Self:
        """Put another cell's text under this one's, unless one of them has no value."""
        if self.reason or line.reason:
            return self
        return replace(self, under=(*self.under, form.format(line.text)), path=f"{self.path} {line.path}")


def word(text: str, kind: str = "word") -> Cell:
    """Print a word: a verdict, a level's name."""
    return Cell(text=text, kind=kind)


def absent(reason: str) -> Cell:
    """Print a dash, and say why."""
    return Cell(text=DASH, told=reason, reason=reason, kind="num absent")


def number(place: Place, write: Callable[[Any], str]) -> Cell:
    """Print a number of the document in the given way.

    Examples
    --------
    >>> number(Place({"n": 1234}).at("n"), "{:,}".format).text
    '1,234'
    """
    return absent(place.reason) if place.reason else Cell(text=write(place.value), path=place.path)


def count(place: Place) -> Cell:
    """Print a number of things."""
    return number(place, "{:,}".format)


def share(place: Place) -> Cell:
    """Print a share as percent."""
    return number(place, percent)


def decimal(place: Place, digits: int = 3) -> Cell:
    """Print a number with a fixed number of decimals, with a true minus."""
    return number(place, lambda value: _decimal(value, digits))


def probability(place: Place) -> Cell:
    """Print a p value."""
    return number(place, lambda value: f"< {SMALL_P}" if value < SMALL_P else f"{value:.3f}")


def estimate(place: Place, name: str, *, sized: bool = False) -> Cell:
    """Print an estimate of the measure ``name``: its value, its interval and, where ``sized``, how many it rests on."""
    if place.reason:
        return absent(place.reason)
    entry = place.value
    value, interval = estimate_parts(name, entry)
    told = f"n = {entry['n']:,}, {entry['n_statements']:,} statements, {entry['method'].replace('_', ' ')}"
    if "n_labelled" in entry:
        told += f"; {entry['n_labelled']:,} labelled, power {entry['power']:.2f}"
    lines = [value, interval, f"n = {entry['n']:,}" if sized else ""]
    first, *under = [line for line in lines if line]
    return Cell(text=first, under=tuple(under), path=place.path, told=told, kind="num estimate")


def average(place: Place, name: str) -> Cell:
    """Print a mean of deployments, in which each counts alike: the sum of their responses is not what it rests on."""
    cell = estimate(place, name)
    return cell if cell.reason else replace(cell, told="each deployment counts alike")


def bounded(place: Place, write: Callable[[float], str], name: str = "value") -> Cell:
    """Print the value ``name`` of an object with its ``low`` and ``high``."""
    if place.reason:
        return absent(place.reason)
    ends = [place.value.get(end) for end in ("low", "high")]
    under = () if None in ends else (f"[{', '.join(_bare(write(end)) for end in ends)}]",)
    return Cell(text=write(place.value[name]), under=under, path=place.path, kind="num estimate")


def between(place: Place, write: Callable[[float], str]) -> Cell:
    """Print a pair [low, high]."""
    if place.reason:
        return absent(place.reason)
    return Cell(text=f"[{', '.join(_bare(write(end)) for end in place.value)}]", path=place.path)


def choice(place: Place, write: Callable[[Any], str] = str) -> Cell:
    """Print a word of the document, or what stands for it."""
    if place.reason:
        return absent(place.reason)
    return Cell(text=write(place.value), path=place.path, kind="word")


def gain(value: float) -> str:
    """Write a difference that is never negative, in percentage points.

    >>> gain(0.404)
    '40.4 pp'
    """
    return points(value).removeprefix("+")


def fraction(value: float) -> str:
    """Write a number with three decimals.

    >>> fraction(0.0419)
    '0.042'
    """
    return _decimal(value, 3)


def _decimal(value: float, digits: int) -> str:
    return signed(value / 100, digits).removeprefix("+")


def _bare(text: str) -> str:
    """Take the unit away."""
    return text.removesuffix(" %").removesuffix(" pp")
