"""The functions of ``import biasmeter``: the offline commands over data frames, with the same numbers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor.coding.responses import read_responses
from auditor.coding.split import code_response, coded_record, load_panels
from auditor.config import load
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.codec import canonical_bytes, rounded
from auditor.documents.differences import DeploymentDifferenceEntry, MissingDifference
from auditor.documents.jsonl import Records
from auditor.documents.model import ModelDocument
from auditor.documents.peers import PeersDocument
from auditor.errors import UsageError
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.estimation.differences import difference as compare_sides
from auditor.estimation.formula import parse_formula
from auditor.estimation.judges import panels
from auditor.estimation.regression import regress as fit_model
from auditor.export.exchange_rows import response_reader
from auditor.peers.comparison import PeerOptions
from auditor.peers.run import analyse as analyse_peers
from auditor.peers.score_table import read_scores
from biasmeter.coroutines import run_coroutine
from biasmeter.frames import Rows, frame_of, records_of
from biasmeter.results import Analysis, Model, PeerResult

if TYPE_CHECKING:
    import pandas as pd


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
    reader = read_responses(records_of(rows), make=response_reader(loaded), skip_bad=skip_bad)

    async def run() -> list[dict[str, Any]]:
        try:
            return [coded_record(response, await code_response(response, panels)) for response in reader]
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
        Seed and number of replicates (20 or more) of the bootstrap for ranges and ranks.
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
    content = canonical_bytes(analyse(read_tallies(_source(rows), options), options))
    return Analysis(content, AnalysisDocument, "analysis.json")


def regress(rows: Rows, formula: str, *, seed: int = 0, skip_bad: bool = False) -> Model:
    """Explain endorsement by several fields at once. As ``biasmeter analyze --model``.

    Parameters
    ----------
    rows
        Data frame or mappings with the columns of ``coded.jsonl``, or what `code` returned.
    formula
        ``OUTCOME ~ TERM + TERM``: the outcome is ``sel``, ``elab`` or ``union``; a term a column, ``a:b`` or ``a*b``.
    seed
        Seed of the draws for intervals that hold together.
    skip_bad
        Skip rows that cannot be read.

    Returns
    -------
    Model
        Differences in points, and coefficients.

    Raises
    ------
    InputError
        A row cannot be counted.
    UsageError
        The formula cannot be read, names a column that no row has, or explains nothing.

    Examples
    --------
    >>> import biasmeter
    >>> asked = [("a", "BJ"), ("a", "CTO"), ("b", "CTO")]
    >>> rows = [
    ...     {"id": f"{name}{task}{i}", "deployment": name, "task": task, "statement_id": i, "elab": "D",
    ...      "sel": "E" if i % (4 if task == "BJ" else 2) == 0 else "D"}
    ...     for name, task in asked for i in range(40)
    ... ]
    >>> deployment, task = biasmeter.regress(rows, "sel ~ deployment + task").typed.differences
    >>> round(deployment.value, 6), deployment.pooled, task.level, round(task.value, 3)
    (0.0, 0.125, 'CTO', 0.25)
    """
    options = Options(by=(), seed=seed, skip_bad=skip_bad, model=parse_formula(formula))
    assert options.model is not None
    content = canonical_bytes(fit_model(read_tallies(_source(rows), options), options.model, seed=seed))
    return Model(content, ModelDocument, "model.json")


def difference(
    rows: Rows,
    first: str,
    second: str,
    *,
    metric: str = "ber_union_full",
    by: str = "deployment",
    skip_bad: bool = False,
) -> DeploymentDifferenceEntry | MissingDifference:
    """Compare two deployments on the same statements and conditions. As the command ``biasmeter difference``.

    Parameters
    ----------
    rows
        Data frame or mappings with the columns of ``coded.jsonl``, or what `code` returned.
    first, second
        Two deployments, or two values of the column ``by``.
    metric
        Name of one of `measures`.
    by
        The column whose values are compared.
    skip_bad
        Skip rows that cannot be read.

    Returns
    -------
    DeploymentDifferenceEntry or MissingDifference
        ``value`` (second less first), ``low``, ``high`` (95 %), ``p``, ``pooled``, ``n``, ``n_statements``,
        ``verdict``; or ``missing``, the reason.

    Raises
    ------
    InputError
        A row cannot be counted.
    UsageError
        There is no such column, value or measure.

    Examples
    --------
    The second deployment endorses as often as the first, and was asked the harder task only.

    >>> import biasmeter
    >>> asked = [("a", "BJ"), ("a", "CTO"), ("b", "CTO")]
    >>> rows = [
    ...     {"id": f"{name}{task}{i}", "deployment": name, "task": task, "statement_id": i, "elab": "D",
    ...      "sel": "E" if i % (4 if task == "BJ" else 2) == 0 else "D"}
    ...     for name, task in asked for i in range(40)
    ... ]
    >>> paired = biasmeter.difference(rows, "a", "b")
    >>> paired.value, paired.pooled, paired.n
    (0.0, 0.125, 80)
    """
    tallies = read_tallies(_source(rows), Options(by=(by,), skip_bad=skip_bad))
    return rounded(compare_sides(tallies, panels(tallies.votes), first, second, field=by, metric=metric))


def _source(rows: Rows) -> Records:
    return Records(rows.records) if isinstance(rows, CodedRows) else records_of(rows)


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
        The command would fail with the same error.
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
    scores = read_scores(records_of(rows), skip_bad=skip_bad)
    content = canonical_bytes(analyse_peers(scores.table, options, skipped=scores.skipped))
    return PeerResult(content, PeersDocument, "peers.json")
