"""Numbers beside the marks of a plane: names would not fit, so a list beside the plane tells whose they are."""

from collections.abc import Sequence
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: From a mark's rim to the middle of its number, in pixels.
_AWAY: Final = 8.0
#: Where a number may stand: not to the sides or above, where a mark's intervals run.
_ANGLES: Final = (pi / 4, -pi / 4, 3 * pi / 4, -3 * pi / 4)

#: A mark's place in the plot's units, and its diameter in pixels.
Mark = tuple[float, float, float]
_Point = tuple[float, float]


def numbered(axes: "Axes", marks: Sequence[Mark]) -> None:
    """Write numbers from 1 beside marks, each where there is most room around its mark."""
    places = [_pixels(axes, mark) for mark in marks]
    taken: list[_Point] = []
    for index, (place, mark) in enumerate(zip(places, marks, strict=True)):
        others = [*places[:index], *places[index + 1 :], *taken]
        taken.append(_roomiest(place, mark[2] / 2 + _AWAY, others))
        axes.annotate(str(index + 1), taken[-1], xycoords="figure pixels", ha="center", va="center", weight="bold")


def _pixels(axes: "Axes", mark: Mark) -> _Point:
    x, y = axes.transData.transform(mark[:2])
    return float(x), float(y)


def _roomiest(place: _Point, away: float, others: Sequence[_Point]) -> _Point:
    """Choose the place around a mark that is farthest from all others."""
    around = [(place[0] + away * cos(angle), place[1] + away * sin(angle)) for angle in _ANGLES]
    return max(around, key=lambda one: min((hypot(one[0] - x, one[1] - y) for x, y in others), default=0.0))
