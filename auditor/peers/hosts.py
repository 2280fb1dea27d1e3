"""The same weights at two hosts, question by question: what differs comes from the deployment, not from the weights.

A filter, a prompt that the host adds, other sampling, a coarser number format: which of them it is, is not told.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from auditor.analysis.document import Json, missing
from auditor.domain.estimate import Insufficient
from auditor.peers.comparison import Rule, equivalence_of
from auditor.peers.description import mean_of
from auditor.peers.document import Entry, mean_json, or_missing, paired_json, sequential_json
from auditor.peers.instruments import EMBEDDING, Columns, Instrument, Instruments
from auditor.peers.options import Options
from auditor.peers.score_table import ScoreTable
from auditor.peers.sequential import question_order, sequential_verdict
from auditor.stats.differences import paired
from auditor.stats.intervals import Floats

_UNDECLARED: Final = Insufficient(reason="a verdict needs a declared margin")


def compare_hosts(table: ScoreTable, instruments: Instruments, options: Options) -> list[Json]:
    """Compare the deployments of the same weights, two by two, as ``hosts`` of ``peers.json``.

    The difference is the first's less the second's. Distances are to the answers of all that are compared and have
    other weights. A verdict takes a declared margin: peers are no measure of how far equal weights may differ.
    """
    everybody = options.peers or table.deployments
    found: list[Json] = []
    for weights, names in sorted(options.hosts.items()):
        others = [table.deployments.index(name) for name in sorted(set(everybody) - set(names))]
        for two in combinations(names, 2):
            columns = [table.deployments.index(name) for name in two]
            compared = {
                one.name: _compared(table, one, columns, others, options) for one in instruments.read(options.blocked)
            }
            found.append({"weights": weights, "deployments": list(two), "instruments": compared})
    return found


def _compared(
    table: ScoreTable, instrument: Instrument, columns: Columns, others: Sequence[int], options: Options
) -> Entry:
    if instrument.name == EMBEDDING and not others:
        return {"missing": "distances need the answers of other weights"}
    values = instrument.pair(columns, others)
    both = values[~np.isnan(values).any(axis=1)]
    if len(both) < 2:
        return {"missing": "fewer than 2 questions in common"}
    rule = options.rule(instrument.name)
    margin = rule.margin if rule.margin is not None else _UNDECLARED
    difference = paired(both[:, 0] - both[:, 1])
    test = equivalence_of(difference, margin, rule.alpha)
    return {
        "n_questions": len(both),
        "means": [float(each) for each in both.mean(axis=0)],
        "delta": or_missing(margin),
        "paired": paired_json(difference, test),
        "verdict": or_missing(test if isinstance(test, Insufficient) else test.verdict),
        "sequential": _sequential(table, instrument, values, rule),
        "themes": [{"theme": theme, "difference": _mean(values[own])} for theme, own in table.by_theme()],
    }


def _sequential(table: ScoreTable, instrument: Instrument, values: Floats, rule: Rule) -> Entry:
    """Take the questions one by one: bets tell equivalence also where nothing varies, which Student's test cannot."""
    if rule.margin is None:
        return missing(_UNDECLARED)
    return sequential_json(sequential_verdict(values[question_order(table.themes)], instrument.bound, rule))


def _mean(values: Floats) -> Entry:
    return mean_json(mean_of(values[:, 0] - values[:, 1]))
