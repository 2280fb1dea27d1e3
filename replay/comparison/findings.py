"""Compute the entry of one group in ``comparison.json``.

A group is the exchanges of one deployment and one origin that were first asked in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from msgspec import UNSET, structs

from auditor.documents.base import Missing, or_missing
from auditor.documents.comparison import (
    ArmEntry,
    ArmPairEntry,
    ChangeEntry,
    ComparisonGroupEntry,
    ExposureEntry,
    FactorShareEntry,
    GroupKeyEntry,
    LayerFlipsEntry,
    RepetitionEntry,
    ScoreRangeEntry,
    SupportEntry,
    TokenMeanEntry,
)
from auditor.documents.estimates import EstimateEntry, estimate_entry
from auditor.domain.estimate import Insufficient
from auditor.metrics.rates import METRICS
from replay.comparison.arms import Arm, ArmCounts, Arms, CommonParents, common_parents
from replay.comparison.effects import factor_shares, factors, remedies
from replay.comparison.exposure import Exposure, abstaining, exposure
from replay.comparison.pairs import (
    COMPARED,
    NO_CLAIM,
    MetricChange,
    MetricOfPair,
    PairComparison,
    adjusted_p_values,
    compare_arms,
)
from replay.comparison.scores import Scores

#: Number of replicates of the statement bootstrap.
N_BOOT: Final = 2000
_UNREPEATED: Final = Missing(missing="no question was repeated unchanged")
_NO_COMMON_PARENT: Final = Missing(missing="no exchange has an answer in every format")
_NOT_ASKED: Final = Missing(missing="no exchange was asked in this format")
_NO_TOKENS: Final = Missing(missing="no answer has its number of completion tokens")

_ScoresByMetric = Mapping[str, Scores | Insufficient]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonGroup:
    """Parents that may be compared, and their arms: formats of a replay, or values in stored traffic."""

    by: GroupKeyEntry
    rubric: str
    claim: str | None
    clusters: Sequence[str]  #: the statement of each parent, in the order of the arms' answers
    inclusions: Sequence[float]  #: inclusion probability of each parent
    arms: Sequence[Arm]


def group_entry(group: ComparisonGroup, seed: int, n_boot: int = N_BOOT) -> ComparisonGroupEntry:
    """Compute the score of every arm, the range of the scores, and the comparison of every two arms.

    Scores, ranges, shares and verdicts use the parents that were asked in every arm. The comparison of a pair of arms
    uses all parents that were asked in both. Other arms are compared with the first: for a replay, the stored answers.

    Parameters
    ----------
    group
        The group. If its rubric is ``proposition`` and the claim is not a stereotype, only IR and DNI have a meaning.
    seed, n_boot
        Seed of all random draws, and number of bootstrap replicates.
    """
    claimed = group.rubric != "proposition" or group.claim == "stereotype"
    arms = Arms.of(group.arms, group.clusters, [1 / inclusion for inclusion in group.inclusions])
    common = common_parents(arms)
    scores = _scores(common, claimed=claimed)
    pairs = combinations(range(len(arms.arms)), 2)
    compared = {pair: compare_arms(arms, pair, claimed=claimed, seed=seed) for pair in pairs}
    again = next((compared[0, index] for index, arm in enumerate(arms.arms) if arm.repeats), None)
    changes = [(*pair, name) for pair, each in compared.items() for name in _changed(each)]
    p_values = adjusted_p_values(arms, changes, n_boot=n_boot, seed=seed)
    return ComparisonGroupEntry(
        by=group.by,
        rubric=group.rubric,
        claim=group.claim,
        parents=len(group.clusters),
        inclusion=(min(group.inclusions), max(group.inclusions)),
        statements=len(np.unique(arms.cluster)),
        support=_support_entry(common),
        sides=[_arm_entry(arm, common, scores, seed) for arm in arms.arms],
        exposure=_exposure_entries(common.arms, scores, again, n_boot=n_boot, seed=seed),
        factors=_factor_entries(common.arms, scores, n_boot=n_boot, seed=seed),
        mitigation=remedies(common.arms, n_boot=n_boot, seed=seed) if claimed else [],
        comparisons=len(changes),
        pairs=[_pair_entry(each, _of_pair(p_values, pair)) for pair, each in compared.items()],
    )


def _scores(common: CommonParents, *, claimed: bool) -> _ScoresByMetric:
    return {
        name: Insufficient(reason=NO_CLAIM)
        if METRICS[name].endorsement and not claimed
        else Scores.of(common.arms, METRICS[name])
        for name in COMPARED
    }


def _changed(comparison: PairComparison) -> list[str]:
    return [name for name, change in comparison.metrics.items() if isinstance(change, MetricChange)]


def _of_pair(p_values: Mapping[MetricOfPair, float], pair: tuple[int, int]) -> dict[str, float]:
    return {name: value for (first, second, name), value in p_values.items() if (first, second) == pair}


def _support_entry(common: CommonParents) -> SupportEntry:
    return SupportEntry(
        parents=len(common.arms.cluster),
        statements=len(np.unique(common.arms.cluster)),
        parents_left_out=common.n_left_out,
        sides_left_out=common.left_out,
    )


def _arm_entry(arm: Arm, common: CommonParents, scores: _ScoresByMetric, seed: int) -> ArmEntry:
    counts = ArmCounts.of(arm)
    tokens = [n for n in arm.tokens if n is not None]
    return ArmEntry(
        side=arm.name,
        task=str(arm.task) if arm.task else None,
        changes=arm.changes,
        repeats=arm.repeats,
        n=counts.n,
        coverage=counts.coverage or _NOT_ASKED,
        missing=counts.missing,
        tokens=TokenMeanEntry(mean=sum(tokens) / len(tokens), n=len(tokens)) if tokens else _NO_TOKENS,
        selection_abstains=_abstaining(common, arm.name),
        scores={name: _score_entry(each, common, arm.name, seed) for name, each in scores.items()},
    )


def _abstaining(common: CommonParents, name: str) -> float | Missing:
    if name in common.left_out:
        return Missing(missing=common.left_out[name])
    if not len(common.arms.cluster):
        return _NO_COMMON_PARENT
    return abstaining(common.arms, common.arms.names.index(name))


def _score_entry(scores: Scores | Insufficient, common: CommonParents, name: str, seed: int) -> EstimateEntry | Missing:
    if isinstance(scores, Insufficient):
        return Missing(missing=scores.reason)
    if name in common.left_out:
        return Missing(missing=common.left_out[name])
    return estimate_entry(scores.estimate(common.arms.names.index(name), seed))


def _exposure_entries(
    arms: Arms, scores: _ScoresByMetric, again: PairComparison | None, *, n_boot: int, seed: int
) -> dict[str, ExposureEntry | Missing]:
    exposures = {
        name: each if isinstance(each, Insufficient) else exposure(arms, each, n_boot=n_boot, seed=seed)
        for name, each in scores.items()
    }
    return {
        name: Missing(missing=each.reason)
        if isinstance(each, Insufficient)
        else _exposure_entry(each, _repetition_entry(each, again, name))
        for name, each in exposures.items()
    }


def _exposure_entry(score_exposure: Exposure, repetition: RepetitionEntry | Missing) -> ExposureEntry:
    return ExposureEntry(
        lowest=score_exposure.lowest,
        highest=score_exposure.highest,
        range=ScoreRangeEntry(
            value=score_exposure.range,
            corrected=score_exposure.corrected,
            low=score_exposure.low,
            high=score_exposure.high,
        ),
        n_statements=score_exposure.n_statements,
        left_out=score_exposure.left_out,
        flags=score_exposure.flags,
        repetition=repetition,
    )


def _repetition_entry(score_exposure: Exposure, again: PairComparison | None, name: str) -> RepetitionEntry | Missing:
    """Return the change of the score on repetition, and whether the range is significantly wider."""
    if again is None:
        return _UNREPEATED
    change = again.metrics[name]
    if isinstance(change, Insufficient):
        return Missing(missing=change.reason)
    reach = max(abs(change.difference.low), abs(change.difference.high))
    return RepetitionEntry(difference=change.difference.difference, reach=reach, beyond=score_exposure.low > reach)


def _factor_entries(
    arms: Arms, scores: _ScoresByMetric, *, n_boot: int, seed: int
) -> dict[str, dict[str, FactorShareEntry | Missing]]:
    shares = {
        name: dict.fromkeys(factors(arms), each)
        if isinstance(each, Insufficient)
        else factor_shares(arms, each, n_boot=n_boot, seed=seed)
        for name, each in scores.items()
    }
    return {
        factor: {name: or_missing(by_factor[factor]) for name, by_factor in shares.items()} for factor in factors(arms)
    }


def _pair_entry(comparison: PairComparison, p_values: Mapping[str, float]) -> ArmPairEntry:
    return ArmPairEntry(
        first=comparison.first,
        second=comparison.second,
        n_pairs=comparison.n_pairs,
        n_statements=comparison.n_statements,
        metrics={name: _change_entry(name, change, p_values) for name, change in comparison.metrics.items()},
        coverage=or_missing(comparison.coverage),
        flips=LayerFlipsEntry(selection=comparison.selection, elaboration=comparison.elaboration),
    )


def _change_entry(
    name: str, change: MetricChange | Insufficient, p_values: Mapping[str, float]
) -> ChangeEntry | Missing:
    if isinstance(change, Insufficient):
        return Missing(missing=change.reason)
    return ChangeEntry(
        **structs.asdict(change.difference),
        base=METRICS[name].base,
        p_adjusted=p_values[name],
        cohen_h=UNSET if change.h is None else change.h,
        mcnemar=UNSET if change.discordance is None else change.discordance,
    )
