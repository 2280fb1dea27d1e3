"""SVG by hand: elements as escaped text, a linear scale. Colours are CSS classes: dark mode and print restyle them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

#: Width of a character of 12 px text, for labels that must fit; measured on a few system fonts.
CHARACTER: Final = 6.4


def element(name: str, *children: Markup | str, **attributes: str | float | None) -> Markup:
    """Write one element; ``class_`` and ``text_anchor`` become ``class`` and ``text-anchor``.

    Examples
    --------
    >>> str(element("text", "a < b", x=1.0, class_="label"))
    '<text x="1" class="label">a &lt; b</text>'
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _number(value))
        for key, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, inner)  # noqa: S704 -- names are this package's own


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def drawing(width: float, height: float, label: str, parts: Iterable[Markup]) -> Markup:
    """Wrap parts as an image that scales down with the page and says what it shows."""
    view = f"0 0 {_number(width)} {_number(height)}"
    return element(
        "svg",
        element("title", label),
        *parts,
        viewBox=view,
        width=width,
        height=height,
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """A linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Map a value, clipped to the scale's ends."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Choose round values within the scale, about ``wanted`` of them.

        Examples
        --------
        >>> Scale(low=0, high=0.6, start=0, end=100).ticks()
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        """
        span = self.high - self.low
        step = next(
            s for s in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0) if span / s <= wanted + 1
        )
        first = -(-self.low // step)
        count = int((self.high - first * step) / step + 1e-9)
        return [round((first + index) * step, 6) + 0.0 for index in range(count + 1)]


def shorten(text: str, width: float) -> str:
    """Cut a label to what fits ``width`` pixels.

    Examples
    --------
    >>> shorten("a very long deployment name", 64)
    'a very lo…'
    """
    room = max(2, int(width / CHARACTER))
    return text if len(text) <= room else text[: room - 1] + "…"
