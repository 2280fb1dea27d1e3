"""Compute the Relative Bias of one table: compare every target with its peers, as the document of ``peers.json``."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from auditor.documents.base import Missing, or_missing
from auditor.documents.peers import (
    HostInstrumentEntry,
    HostPairEntry,
    HostThemeEntry,
    PeersDocument,
    SequentialEntry,
)
from auditor.domain.estimate import Insufficient
from auditor.errors import UsageError
from auditor.peers.comparison import MarginRule, PeerOptions, equivalence_of
from auditor.peers.document import mean_of, paired_entry
from auditor.peers.instruments import EMBEDDING, Columns, Instrument, Instruments
from auditor.peers.score_table import ScoreTable
from auditor.peers.sequential import question_order, sequential_verdict
from auditor.peers.target import TargetComparison
from auditor.stats.differences import paired
from auditor.stats.intervals import Floats


def analyse(table: ScoreTable, options: PeerOptions, *, skipped: int = 0) -> PeersDocument:
    """Compare every target with its peers.

    Parameters
    ----------
    table
        Scores and vectors of all deployments.
    options
        The targets, the peers and the settings of the comparison.
    skipped
        Bad rows that were left out of the table.

    Returns
    -------
    dict
        The document of ``peers.json``; the same for the same rows and options, whatever the rows' order was.

    Raises
    ------
    UsageError
        For a target, a peer or an instrument that is not in the table.
    """
    instruments = Instruments(table)
    _check_known("--target", options.targets, table.deployments)
    _check_known("--peers", options.peers or (), table.deployments)
    for names in options.hosts.values():
        _check_known("--hosts", names, table.deployments)
    _check_known("--margin", tuple(options.margins), instruments.names)
    return PeersDocument(
        schema="biasmeter.peers/1",
        k=options.k,
        alpha=options.alpha,
        blocked=options.blocked,
        margin=options.margin,
        margins=dict(options.margins),
        n_rows=int((table.answered | table.failed).sum()),
        n_skipped=skipped,
        n_questions=len(table.questions),
        targets=[TargetComparison(table, instruments, options, name).entry() for name in options.targets],
        hosts=compare_hosts(table, instruments, options),
    )


def _check_known(option: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{option}: the file has no {name!r}; it has: {', '.join(known)}")


_UNDECLARED: Final = Insufficient(reason="a verdict needs a declared margin")


def compare_hosts(table: ScoreTable, instruments: Instruments, options: PeerOptions) -> list[HostPairEntry]:
    """Compare the deployments of the same weights, two by two, as ``hosts`` of ``peers.json``.

    The difference is the first minus the second. Distances are to the answers of the compared deployments with other
    weights. A verdict needs a declared margin: peers do not tell how far equal weights may differ.
    """
    everybody = options.peers or table.deployments
    entries: list[HostPairEntry] = []
    for weights, names in sorted(options.hosts.items()):
        others = [table.deployments.index(name) for name in sorted(set(everybody) - set(names))]
        for two in combinations(names, 2):
            columns = [table.deployments.index(name) for name in two]
            compared = {
                instrument.name: _compared(table, instrument, columns, others, options)
                for instrument in instruments.read(options.blocked)
            }
            entries.append(HostPairEntry(weights=weights, deployments=list(two), instruments=compared))
    return entries


def _compared(
    table: ScoreTable, instrument: Instrument, columns: Columns, others: Sequence[int], options: PeerOptions
) -> HostInstrumentEntry | Missing:
    if instrument.name == EMBEDDING and not others:
        return Missing(missing="distances need the answers of other weights")
    values = instrument.pair(columns, others)
    both = values[~np.isnan(values).any(axis=1)]
    if len(both) < 2:
        return Missing(missing="fewer than 2 questions in common")
    rule = options.rule(instrument.name)
    margin = rule.margin if rule.margin is not None else _UNDECLARED
    difference = paired(both[:, 0] - both[:, 1])
    test = equivalence_of(difference, margin, rule.alpha)
    return HostInstrumentEntry(
        n_questions=len(both),
        means=[float(each) for each in both.mean(axis=0)],
        delta=or_missing(margin),
        paired=paired_entry(difference, test),
        verdict=or_missing(test if isinstance(test, Insufficient) else test.verdict),
        sequential=_sequential(table, instrument, values, rule),
        themes=[
            HostThemeEntry(theme=theme, difference=mean_of(values[rows, 0] - values[rows, 1]))
            for theme, rows in table.by_theme()
        ],
    )


def _sequential(
    table: ScoreTable, instrument: Instrument, values: Floats, rule: MarginRule
) -> SequentialEntry | Missing:
    """Take the questions one by one: the sequential test also works if the values do not vary."""
    if rule.margin is None:
        return Missing(missing=_UNDECLARED.reason)
    return sequential_verdict(values[question_order(table.themes)], instrument.bound, rule)
