"""Results of the library: a document as typed objects, as a data frame, as drawings and as a page."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from typing_extensions import override

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Document, Missing
from auditor.documents.codec import decode
from auditor.documents.comparison import ComparisonDocument
from auditor.documents.estimates import EstimateEntry, GroupEntry
from auditor.documents.model import ModelDocument
from auditor.documents.peers import PeersDocument
from auditor.errors import UsageError
from auditor.report.analysis import draw_analysis, render_analysis
from auditor.report.canvas import outside_the_page
from auditor.report.model import draw_model
from auditor.report.peers import draw_peers, render_peers
from biasmeter.frames import frame_of
from replay.page.arms import exposure_panels
from replay.page.render import group_title, render

if TYPE_CHECKING:
    import pandas as pd

_Document = TypeVar("_Document", bound=Document)
_ESTIMATE = ("value", "low", "high", "base", "n", "n_statements", "method")
#: The columns of a measure in a data frame.
MEASURES = ("metric", *_ESTIMATE, "flags", "missing")


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing of a report; a notebook shows it inline."""

    name: str
    html: str = field(repr=False)  #: with inline SVG; one drawing may have several panels

    def _repr_html_(self) -> str:
        return self.html


class Result(Generic[_Document]):
    """What was found.

    Attributes
    ----------
    typed
        The document as typed objects (`auditor.documents`), with the ten significant digits of the file.
    """

    def __init__(self, content: bytes, kind: type[_Document], name: str) -> None:
        self._content = content
        # As the command: from what the file says, so the report is that of the file.
        self.typed: _Document = decode(content, kind, name)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The document that the command writes, as plain values."""
        document: dict[str, Any] = msgspec.json.decode(self._content)
        return document

    def to_json(self) -> bytes:
        """Return the bytes of the file that the command writes."""
        return self._content

    def to_pandas(self) -> "pd.DataFrame":
        """Return the result as a data frame."""
        raise NotImplementedError

    def _draw(self) -> Mapping[str, str]:
        """Return the drawings as HTML, by name."""
        return {}

    @cached_property
    def _figures(self) -> Mapping[str, str]:
        return self._draw()

    @property
    def figures(self) -> list[str]:
        """The names of the drawings; which there are depends on the rows."""
        return list(self._figures)

    def figure(self, name: str | None = None) -> Figure:
        """Return a drawing of the report; without a name the first of `figures`.

        Raises
        ------
        UsageError
            There is no drawing, or none of that name; the message lists those there are.
        """
        chosen = next(iter(self._figures), "") if name is None else name
        if chosen not in self._figures:
            raise UsageError(f"there is no figure {chosen!r}; known: {', '.join(self._figures) or 'none'}")
        return Figure(name=chosen, html=self._figures[chosen])

    def _repr_html_(self) -> str:
        html: str = self.to_pandas()._repr_html_()
        return html


class Analysis(Result[AnalysisDocument]):
    """The estimates of coded rows; see `biasmeter.analyze`."""

    @override
    def to_pandas(self) -> "pd.DataFrame":
        """Return one row for each group and measure.

        Returns
        -------
        pandas.DataFrame
            The columns of ``by``, ``rubric``, ``metric``, ``value``, ``low``, ``high`` (95 %), ``base``, ``n``
            (responses), ``n_statements``, ``method``, ``flags`` and ``missing`` (the reason where there is no value).
            A group of all rows has no values in the columns of ``by``.
        """
        return frame_of_groups(self.typed.groups, list(self.typed.by))

    @override
    def _draw(self) -> Mapping[str, str]:
        return draw_analysis(self.typed)

    def report(self) -> bytes:
        """Return the report as HTML in UTF-8, equal to the command's ``report.html``."""
        return render_analysis(self.typed)


class Model(Result[ModelDocument]):
    """A regression of coded rows; see `biasmeter.regress`."""

    @override
    def to_pandas(self) -> "pd.DataFrame":
        """Return one row for each level that is compared with the reference level of its term.

        Returns
        -------
        pandas.DataFrame
            ``term``, ``level``, ``reference``, ``value``, ``low``, ``high`` (95 %, together for a term), ``p``,
            ``p_adjusted``, ``rate``, ``reference_rate``, ``pooled``, ``n``, ``support``, ``missing``.
        """
        return frame_of(self.document["differences"])

    def coefficients(self) -> "pd.DataFrame":
        """Return one row for each log odds ratio: ``term``, ``level``, ``value``, ``se``, ``df``, ``low``, ``high``."""
        return frame_of(self.document["coefficients"])

    @override
    def _draw(self) -> Mapping[str, str]:
        drawing = draw_model(self.typed)
        return {} if drawing is None else {"differences": outside_the_page(drawing)}


class PeerResult(Result[PeersDocument]):
    """The comparison of deployments with their peers; see `biasmeter.peers`."""

    @override
    def to_pandas(self) -> "pd.DataFrame":
        """Return one row for each target and instrument, with the fields of its entry that are single values."""
        rows = []
        for entry in self.document["targets"]:
            for name, result in entry["instruments"].items():
                single = {key: value for key, value in result.items() if not isinstance(value, dict | list)}
                rows.append({"target": entry["target"], "instrument": name, **single})
        return frame_of(rows)

    @override
    def _draw(self) -> Mapping[str, str]:
        return draw_peers(self.typed)

    def report(self) -> bytes:
        """Return the report as HTML in UTF-8, equal to the command's ``report.html``."""
        return render_peers(self.typed)


class Comparison(Result[ComparisonDocument]):
    """Answers to the same questions, asked in different ways; see `biasmeter.compare`."""

    @override
    def to_pandas(self) -> "pd.DataFrame":
        """Return one row for each group, side and measure, over the parents with an answer on every side.

        Returns
        -------
        pandas.DataFrame
            ``deployment``, ``origin``, ``route``, ``task``, ``rubric``, ``side``, and the columns of a measure as in
            `Analysis.to_pandas`.
        """
        rows = [
            {
                "deployment": group.by.deployment,
                "origin": group.by.origin,
                "route": group.by.route,
                "task": group.by.task,
                "rubric": group.rubric,
                "side": side.side,
                **measure,
            }
            for group in self.typed.groups
            for side in group.sides
            for measure in _measures(side.scores)
        ]
        return frame_of(rows, ["deployment", "origin", "route", "task", "rubric", "side", *MEASURES])

    @override
    def _draw(self) -> Mapping[str, str]:
        drawn = ((group_title(group), exposure_panels(group)) for group in self.typed.groups)
        return {title: outside_the_page(panels) for title, panels in drawn if panels is not None}

    def report(self) -> bytes:
        """Return the page as HTML in UTF-8, equal to the command's ``comparison.html``."""
        return render(self.typed)


def frame_of_groups(groups: Iterable[GroupEntry], by: list[str]) -> "pd.DataFrame":
    """Return one row for each group and measure, as `Analysis.to_pandas` describes them."""
    rows = [
        {**{name: group.by.get(name) for name in by}, "rubric": group.rubric, **_counted(measure, group)}
        for group in groups
        for measure in _measures(group.metrics)
    ]
    return frame_of(rows, [*by, "rubric", *MEASURES])


def _counted(measure: dict[str, Any], group: GroupEntry) -> dict[str, Any]:
    return {"n": group.n, "n_statements": group.n_statements} | measure


def _measures(metrics: Mapping[str, EstimateEntry | Missing]) -> Iterator[dict[str, Any]]:
    for metric, entry in metrics.items():
        if isinstance(entry, Missing):
            yield {"metric": metric, "missing": entry.missing}
        else:
            yield {
                "metric": metric,
                **{name: getattr(entry, name) for name in _ESTIMATE},
                "flags": list(entry.flags),
            }
