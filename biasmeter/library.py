"""The functions of ``import biasmeter``: the offline commands over data frames, with the same numbers."""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from auditor.coding.responses import read_responses
from auditor.coding.split import code as code_one
from auditor.coding.split import coded_record, load_panels
from auditor.config import load
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Document, Missing
from auditor.documents.codec import canonical_bytes, decode
from auditor.documents.estimates import GroupEntry
from auditor.documents.jsonl import Records
from auditor.documents.peers import PeersDocument
from auditor.errors import UsageError
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.peers.comparison import PeerOptions
from auditor.peers.run import analyse as analyse_peers
from auditor.peers.score_table import read_scores
from auditor.report.analysis import draw_analysis, render_analysis
from auditor.report.peers import render_peers
from biasmeter.frames import Rows, frame_of, records_of

if TYPE_CHECKING:
    import pandas as pd

_Document = TypeVar("_Document", bound=Document)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing of a report; a notebook shows it inline."""

    name: str
    html: str  #: with inline SVG; one drawing may have several panels

    def _repr_html_(self) -> str:
        return self.html


class Result(Generic[_Document]):
    """What an analysis found.

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
        found: dict[str, Any] = msgspec.json.decode(self._content)
        return found

    def to_json(self) -> bytes:
        """Return the bytes of the file that the command writes."""
        return self._content


class Analysis(Result[AnalysisDocument]):
    """The estimates of coded rows; see `analyze`."""

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row for each group and measure.

        Returns
        -------
        pandas.DataFrame
            The columns of ``by``, ``rubric``, ``metric``, ``value``, ``low``, ``high`` (95 %), ``base``, ``n``
            (responses), ``n_statements``, ``method``, ``flags`` and ``missing`` (the reason where there is no value).
            A group of all rows has no values in the columns of ``by``.
        """
        by = list(self.typed.by)
        rows = [row for group in self.typed.groups for row in _measures(group, by)]
        columns = (
            "rubric",
            "metric",
            "value",
            "low",
            "high",
            "base",
            "n",
            "n_statements",
            "method",
            "flags",
            "missing",
        )
        return frame_of(rows, [*by, *columns])

    @cached_property
    def _figures(self) -> Mapping[str, str]:
        return draw_analysis(self.typed)

    @property
    def figures(self) -> list[str]:
        """The names of the drawings; which there are depends on the rows."""
        return list(self._figures)

    def figure(self, name: str) -> Figure:
        """Return a drawing of the report.

        Raises
        ------
        UsageError
            There is no drawing of that name; the message lists those there are.
        """
        if name not in self._figures:
            raise UsageError(f"there is no figure {name!r}; known: {', '.join(self._figures) or 'none'}")
        return Figure(name=name, html=self._figures[name])

    def report(self) -> bytes:
        """Return the report as HTML in UTF-8, equal to the command's ``report.html``."""
        return render_analysis(self.typed)

    def _repr_html_(self) -> str:
        html: str = self.to_pandas()._repr_html_()
        return html


class PeerResult(Result[PeersDocument]):
    """The comparison of deployments with their peers; see `peers`."""

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row for each target and instrument, with the fields of its entry that are single values."""
        rows = []
        for entry in self.document["targets"]:
            for name, found in entry["instruments"].items():
                single = {key: value for key, value in found.items() if not isinstance(value, dict | list)}
                rows.append({"target": entry["target"], "instrument": name, **single})
        return frame_of(rows)

    def report(self) -> bytes:
        """Return the report as HTML in UTF-8, equal to the command's ``report.html``."""
        return render_peers(self.typed)


class CodedRows:
    """Responses with their labels on both layers, in the order of the responses; see `code`."""

    def __init__(self, records: Sequence[Mapping[str, Any]], complaints: Sequence[str]) -> None:
        self.records = list(records)  #: rows of ``coded.jsonl``
        self.complaints = list(complaints)  #: of the first skipped rows

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.records)

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row for each response."""
        return frame_of(self.records)


def code(
    rows: Rows,
    *,
    judges: Sequence[str] | None = ("lexicon",),
    config: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
) -> CodedRows:
    """Code responses on both layers: the selection by rule, the elaboration by the judges.

    As the command ``biasmeter code``.

    Parameters
    ----------
    rows
        Data frame or mappings with the columns of ``responses.jsonl`` (``docs/selection.md``).
    judges
        Names of judges. ``lexicon`` needs no network; it is a coarse word list. None or empty: the panel of the
        configuration, and without one no judge.
    config
        The file that declares the other judges.
    skip_bad
        Skip rows that cannot be read, instead of raising.

    Raises
    ------
    InputError
        A row cannot be read.
    UsageError
        A judge is not known, or ``rows`` are no rows.

    Examples
    --------
    >>> import biasmeter
    >>> row = {
    ...     "id": "1", "deployment": "a", "task": "BJ", "statement": "Tall people are rude.",
    ...     "response": "No. That is a stereotype, and it is not true.",
    ... }
    >>> [(one["sel"], one["elab"]) for one in biasmeter.code([row])]
    [('D', 'D')]
    """
    loaded = None if config is None else load(Path(config), os.environ)
    panels = load_panels(judges or (), loaded)
    reader = read_responses(records_of(rows), skip_bad=skip_bad)

    async def run() -> list[dict[str, Any]]:
        try:
            return [coded_record(one, await code_one(one.task, one.answer, one.question, panels)) for one in reader]
        finally:
            await panels.aclose()

    return CodedRows(run_coroutine(run()), reader.complaints)


def analyze(
    rows: Rows,
    *,
    by: Sequence[str] = ("deployment", "task"),
    cluster: Sequence[str] = ("statement_id",),
    seed: int = 0,
    n_boot: int = 2000,
    skip_bad: bool = False,
) -> Analysis:
    """Estimate bias on two axes from coded rows. As the command ``biasmeter analyze``, with the same numbers.

    Parameters
    ----------
    rows
        Data frame or mappings with the columns of ``coded.jsonl`` (``docs/estimates.md``), or what `code` returned.
    by
        Columns to group by.
    cluster
        Columns whose values are the clusters of the intervals; several are crossed, unless one determines another.
        The default is the statement.
    seed, n_boot
        Of the bootstrap for ranges and ranks; 20 replicates or more.
    skip_bad
        Skip rows that cannot be read, and count them.

    Raises
    ------
    InputError
        A row cannot be counted.
    UsageError
        ``by`` or ``cluster`` name a column that no row has, or a number is out of its range.

    Examples
    --------
    >>> import biasmeter
    >>> rows = [
    ...     {"id": i, "deployment": "a", "task": "BJ", "sel": "E" if i % 4 == 0 else "D", "elab": "D"}
    ...     for i in range(60)
    ... ]
    >>> found = biasmeter.analyze(rows, n_boot=20).typed.deployments[0].metrics["ber_union_full"]
    >>> found.value, found.n
    (0.25, 60)
    """
    for name, columns in (("by", by), ("cluster", cluster)):
        if isinstance(columns, str) or len(set(columns)) < len(columns):
            raise UsageError(f"{name} must be a list of different columns")
    if seed < 0 or n_boot < 20:
        raise UsageError("seed must be 0 or more, n_boot 20 or more")
    clustered = () if tuple(cluster) == ("statement_id",) else tuple(cluster)
    options = Options(by=tuple(by), cluster=clustered, seed=seed, n_boot=n_boot, skip_bad=skip_bad)
    source = Records(rows.records) if isinstance(rows, CodedRows) else records_of(rows)
    content = canonical_bytes(analyse(read_tallies(source, options), options))
    return Analysis(content, AnalysisDocument, "analysis.json")


def peers(  # noqa: PLR0913 -- the options of the command
    rows: Rows,
    *,
    target: str | Sequence[str],
    peers: Sequence[str] | None = None,
    blocked: Literal["answer", "drop"] = "answer",
    margin: float | Mapping[str, float] | None = None,
    hosts: Mapping[str, Sequence[str]] | None = None,
    k: float = 2.81,
    alpha: float = 0.05,
    skip_bad: bool = False,
) -> PeerResult:
    """Compare deployments with their peers on the same questions. As the command ``biasmeter peers``.

    Parameters
    ----------
    rows
        Data frame or mappings with the columns of ``scores.jsonl`` (``docs/peers.md``).
    target
        The deployments to compare.
    peers
        The deployments to compare with; all in the rows by default.
    blocked
        Whether a content filter's block counts as an answer, or drops the question.
    margin
        The largest difference that counts as equivalent, for all instruments or by instrument.
    hosts
        Deployments that serve the same weights, by the name of these.
    k, alpha
        Without ``margin``: the margin in standard deviations of the peers' means; the level of each one-sided test.

    Raises
    ------
    InputError, UsageError
        As the command.
    """
    options = PeerOptions(
        targets=(target,) if isinstance(target, str) else tuple(target),
        peers=None if peers is None else tuple(peers),
        blocked=blocked,
        k=k,
        alpha=alpha,
        margin=None if isinstance(margin, Mapping) else margin,
        margins=margin if isinstance(margin, Mapping) else {},
        hosts={weights: tuple(names) for weights, names in (hosts or {}).items()},
    )
    found = read_scores(records_of(rows), skip_bad=skip_bad)
    content = canonical_bytes(analyse_peers(found.table, options, skipped=found.skipped))
    return PeerResult(content, PeersDocument, "peers.json")


def _measures(group: GroupEntry, by: Iterable[str]) -> Iterator[dict[str, Any]]:
    shared = {name: group.by.get(name) for name in by} | {"rubric": group.rubric}
    for metric, found in group.metrics.items():
        if isinstance(found, Missing):
            yield {
                **shared,
                "metric": metric,
                "n": group.n,
                "n_statements": group.n_statements,
                "missing": found.missing,
            }
            continue
        yield {
            **shared,
            "metric": metric,
            **{name: getattr(found, name) for name in ("value", "low", "high", "base", "n", "n_statements", "method")},
            "flags": list(found.flags),
        }


def run_coroutine(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end, also where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    result: list[_T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 -- raised again in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
