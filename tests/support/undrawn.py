"""Pages of the report without their drawings, for tests of what a page says: each drawing takes a tenth of a second."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest


class _Ink:
    """Takes whatever is drawn with it, and shows nothing."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_arguments: Any, **_options: Any) -> Any:
        return self

    def __getitem__(self, _place: int) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        yield self


class _Plot(_Ink):
    def __init__(self, sheet: "_Sheet", place: tuple[float, float, float, float]) -> None:
        left, width = place[0] * sheet.bbox.width, place[2] * sheet.bbox.width
        self.bbox = SimpleNamespace(x0=left, x1=left + width)
        self.transData = SimpleNamespace(transform=lambda point: point)
        self._sheet, self._rows = sheet, 0

    def get_figure(self, **_options: Any) -> "_Sheet":
        return self._sheet

    def set_yticks(self, places: Any, *_names: Any) -> None:
        self._rows = len(places)

    def get_xlim(self) -> tuple[float, float]:
        return 0.0, 1.0

    get_ylim = get_xlim

    def get_yticklabels(self) -> list[_Ink]:
        return [_Ink()] * self._rows


class _Sheet(_Ink):
    """What the drawings use of `matplotlib.figure.Figure`."""

    def __init__(self, *, figsize: tuple[float, float], **_options: Any) -> None:
        self.bbox = SimpleNamespace(width=72 * figsize[0], height=72 * figsize[1])

    def add_axes(self, place: tuple[float, float, float, float], **_options: Any) -> _Plot:
        return _Plot(self, place)

    def savefig(self, out: Any, **_options: Any) -> None:
        size = f"{self.bbox.width:.0f} {self.bbox.height:.0f}"
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}"/>')


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch, thorough: bool) -> None:
    """Leave every sheet empty; with all examples (`make test-all`) these pages have their drawings, too."""
    if not thorough:
        monkeypatch.setattr("matplotlib.figure.Figure", _Sheet)
