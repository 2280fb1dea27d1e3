"""One target among its peers: everything that ``peers.json`` says of it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from auditor.analysis.document import Json
from auditor.domain.estimate import Insufficient
from auditor.peers.cautions import cautions
from auditor.peers.comparison import ENOUGH_PEERS, Comparison, compare
from auditor.peers.description import counts, edges, length_effect, mean_of, quartiles
from auditor.peers.deviation import judge_deviation, mean_present
from auditor.peers.document import (
    Entry,
    brief_json,
    comparison_json,
    length_json,
    mean_json,
    reading_json,
    sequential_json,
)
from auditor.peers.instruments import EMBEDDING, EmbeddingDistances, Instrument, Instruments
from auditor.peers.options import Options
from auditor.peers.score_table import Mask, ScoreTable
from auditor.peers.sequential import question_order, sequential_verdict
from auditor.stats.intervals import Floats


class Target:
    """A target and the deployments that it is compared with."""

    def __init__(self, table: ScoreTable, instruments: Instruments, options: Options, name: str) -> None:
        others = table.deployments if options.peers is None else sorted(options.peers)
        self._names = (name, *(other for other in others if other != name))
        self._columns = [table.deployments.index(each) for each in self._names]
        self._table = table
        self._instruments = instruments
        self._options = options

    def entry(self) -> Entry:
        """Write one entry of ``targets``."""
        table, blocked = self._table, self._options.blocked
        return {
            "target": self._names[0],
            "peers": list(self._names[1:]),
            "instruments": {one.name: self._entry_of(one) for one in self._instruments.read(blocked)},
            "excluded": {
                "error": self._count(table.failed),
                "blocked": self._count(table.blocked) if blocked == "drop" else 0,
            },
            "answers": {
                name: {
                    "answered": int(table.answered[:, column].sum()),
                    "blocked": int(table.blocked[:, column].sum()),
                    "error": int(table.failed[:, column].sum()),
                }
                for name, column in zip(self._names, self._columns, strict=True)
            },
            "other_reading": self._other_reading(),
        }

    def _entry_of(self, instrument: Instrument) -> Entry:
        values = instrument.values(self._columns)
        rule = self._options.rule(instrument.name)
        found = compare(values, rule)
        bins = edges(values, judged=instrument.name != EMBEDDING)
        described: Entry = {
            "bins": bins.tolist(),
            "deployments": {name: _described(column, bins) for name, column in self._by_name(values)},
            "themes": self._themes(values),
            "answers": self._answers(instrument, values),
        }
        if isinstance(found, Insufficient):
            return {"missing": found.reason, **described}
        own, clean = self._own(instrument, values)
        without = self._without_each(instrument, found)
        return {
            **comparison_json(found),
            **own,
            "robust": brief_json(compare(values, replace(rule, margin=None, robust=True))),
            "leave_one_peer_out": [{"without": name, **brief_json(each)} for name, each in without.items()],
            "sequential": self._sequential(instrument, values),
            "length": length_json(length_effect(values, self._table.lengths[:, self._columns])),
            "warnings": [{"code": each.code, "text": each.text} for each in cautions(found, without, clean)],
            **described,
        }

    def _own(self, instrument: Instrument, values: Floats) -> tuple[Entry, Comparison | Insufficient | None]:
        """Give what only judges or only distances have; of distances also the comparison with clean deviations."""
        if not isinstance(instrument, EmbeddingDistances):
            return {"d_llm": _d_llm(values)}, None
        without_target = instrument.clean(self._columns)
        clean = compare(without_target, self._options.rule(instrument.name))
        own: Entry = {
            "d_llm": {"missing": "of judges' scores alone"},
            "d_embed": self._means(values),
            "d_embed_clean": self._means(without_target),
            "clean": brief_json(clean),
        }
        return own, clean

    def _sequential(self, instrument: Instrument, values: Floats) -> Entry:
        """Take the questions one by one."""
        in_order = values[question_order(self._table.themes)]
        return sequential_json(sequential_verdict(in_order, instrument.bound, self._options.rule(instrument.name)))

    def _without_each(self, instrument: Instrument, whole: Comparison) -> dict[str, Comparison | Insufficient]:
        """Leave out one peer after the other; where all were enough for a verdict, one fewer is as well."""
        rule = self._options.rule(instrument.name)
        enough = 2 if whole.n_peers >= ENOUGH_PEERS else ENOUGH_PEERS
        return {
            name: compare(
                instrument.values([each for each in self._columns if each != column]), rule, enough_peers=enough
            )
            for name, column in zip(self._names[1:], self._columns[1:], strict=True)
        }

    def _other_reading(self) -> Entry:
        """Compare with the blocked answers read the other way."""
        if not self._count(self._table.blocked):
            return {"missing": "no answer was blocked"}
        other = self._options.other_blocked
        found = {
            one.name: reading_json(compare(one.values(self._columns), self._options.rule(one.name)))
            for one in self._instruments.read(other)
        }
        return {"blocked": other, "instruments": found}

    def _themes(self, values: Floats) -> list[Json]:
        """Average by theme: each deployment, and the target's paired difference."""
        return [
            {
                "theme": theme,
                "deployments": {name: mean_json(mean_of(column)) for name, column in self._by_name(values[own])},
                "difference": mean_json(mean_of(judge_deviation(values[own]))),
            }
            for theme, own in self._table.by_theme()
        ]

    def _answers(self, instrument: Instrument, values: Floats) -> Entry:
        """Count the answers that have no value, and those whose value is the rule's."""
        kept = self._table.kept(self._options.blocked)[:, self._columns]
        without = kept & np.isnan(values)
        blocked = self._table.blocked[:, self._columns]
        return {
            "without_value": int(without.sum()),
            "blocked_without_value": int((without & blocked).sum()),
            "blocked_by_rule": self._count(instrument.by_rule()),
        }

    def _means(self, values: Floats) -> Entry:
        """Average by deployment."""
        return {
            name: {"missing": "no values"} if np.isnan(mean) else float(mean)
            for name, mean in zip(self._names, mean_present(values, 0), strict=True)
        }

    def _by_name(self, values: Floats) -> Sequence[tuple[str, Floats]]:
        return list(zip(self._names, values.T, strict=True))

    def _count(self, mask: Mask) -> int:
        return int(mask[:, self._columns].sum())


def _d_llm(values: Floats) -> Json:
    """Average the absolute deviation of a judge's scores from the peers' (Relative Bias Eq. 4)."""
    deviations = judge_deviation(values)
    return float(np.abs(deviations).mean()) if len(deviations) else {"missing": "no questions in common"}


def _described(values: Floats, bins: Floats) -> Entry:
    return {**mean_json(mean_of(values)), "quartiles": quartiles(values), "counts": counts(values, bins)}
