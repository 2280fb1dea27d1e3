"""Analyse statements as the items of a test: difficulty, discrimination, differential functioning, and a short form.

A respondent is one deployment under one condition, template and draw; its score is the share of the statements that it
endorses. Rows are respondents, columns are statements, and an entry is 1 (endorsed), 0 or NaN (not asked or not coded).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.domain.estimate import Insufficient
from auditor.stats.ranks import spearman_rho, spearman_rhos

Floats = NDArray[np.float64]

#: Fewer respondents give no figure of an item.
MIN_RESPONDENTS: Final = 20
#: An item is dead if its rate is at most this, or at least one minus this, of at least so many respondents.
DEAD: Final = 0.01
MIN_FOR_DEAD: Final = 100
#: A correlation of two items from which they count as duplicates.
DUPLICATE: Final = 0.95
#: The rank correlation with the whole pool that a short form must keep.
KEEPS_RANKS: Final = 0.95
#: Bootstrap samples of the respondents that tell the size of a short form, and the share that must keep the ranks.
_RESAMPLES: Final = 100
_KEPT: Final = 0.9
#: A rank correlation of fewer deployments says nothing.
MIN_DEPLOYMENTS: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One statement as an item."""

    statement: str
    n: int  #: respondents
    difficulty: float | None  #: the share that endorses it, from 0 to 1
    discrimination: float | None  #: the correlation with the score of the other items; None without variance
    dead: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class DifferentialItem:
    """One statement that a deployment endorses more or less often than others with the same score (Mantel-Haenszel)."""

    statement: str
    deployment: str
    log_odds_ratio: float  #: above 0: endorsed more often than the score predicts
    chi_square: float
    p_holm: float  #: adjusted over all statements and deployments that were tested


@dataclass(frozen=True, kw_only=True, slots=True)
class ShortForm:
    """A few of the most informative items, chosen on one half of the respondents and checked on the other.

    The correlations are Spearman's rho over deployments. ``independent_correlation`` is what a reader should expect of
    a new audit with the short form; it cannot exceed ``whole_correlation`` by more than chance, because both halves
    have noise.
    """

    statements: tuple[str, ...]
    rank_correlation: float  #: correlation of the form with all items, both on the held-out half
    independent_correlation: float | None  #: the form on the held-out half with all items on the other half
    whole_correlation: float | None  #: all items on the held-out half with all items on the other half


def item_statistics(statements: Sequence[str], endorsed: Floats) -> list[Item]:
    """Return difficulty and corrected item-rest correlation of each statement.

    Parameters
    ----------
    statements
        Names, I of them.
    endorsed
        Shape [R, I]: 1, 0 or NaN.
    """
    answered = ~np.isnan(endorsed)
    known = np.nan_to_num(endorsed)
    items = []
    for column, name in enumerate(statements):
        here = answered[:, column]
        n = int(here.sum())
        rate = float(known[here, column].mean()) if n >= MIN_RESPONDENTS else None
        rest, responses = _rest(answered, known, column)[here], known[here, column]
        usable = ~np.isnan(rest)
        items.append(
            Item(
                statement=name,
                n=n,
                difficulty=rate,
                discrimination=_correlation(responses[usable], rest[usable]),
                dead=rate is not None and n >= MIN_FOR_DEAD and not DEAD < rate < 1 - DEAD,
            )
        )
    return items


def duplicate_items(statements: Sequence[str], endorsed: Floats) -> list[tuple[str, str, float]]:
    """Return pairs of statements that get nearly the same answers, with their correlation; dead items are in no pair.

    Parameters
    ----------
    statements, endorsed
        The same as in ``item_statistics``.
    """
    pairs = []
    for first in range(len(statements)):
        for second in range(first + 1, len(statements)):
            both = ~np.isnan(endorsed[:, [first, second]]).any(axis=1)
            correlation = _correlation(endorsed[both, first], endorsed[both, second])
            if correlation is not None and correlation >= DUPLICATE:
                pairs.append((statements[first], statements[second], correlation))
    return pairs


def differential_items(
    statements: Sequence[str], deployments: Sequence[str], endorsed: Floats, *, alpha: float = 0.05
) -> list[DifferentialItem]:
    """Return the statements that work differently for a deployment: Mantel-Haenszel over strata of equal score.

    The score includes the statement: only then does the test keep its level where deployments differ much. Each
    deployment is the focal group against all others. Holm's adjustment is over all pairs that can be tested.

    Parameters
    ----------
    statements
        Names, I of them.
    deployments
        The deployment of each respondent, R of them.
    endorsed
        Shape [R, I]: 1, 0 or NaN.
    alpha
        The largest adjusted p that is returned.

    References
    ----------
    Holland and Thayer (1988), Differential item performance and the Mantel-Haenszel procedure.
    """
    who = np.asarray(deployments)
    answered, known = ~np.isnan(endorsed), np.nan_to_num(endorsed)
    share = known.sum(axis=1) / np.maximum(answered.sum(axis=1), 1)
    score = np.rint(share * len(statements)).astype(np.intp)
    tested = []
    for column, name in enumerate(statements):
        here = answered[:, column]
        if here.sum() < MIN_RESPONDENTS:
            continue
        stratum = score[here]
        for deployment in sorted(set(deployments)):
            result = _mantel_haenszel(who[here] == deployment, known[here, column], stratum)
            if result is not None:
                tested.append((name, deployment, *result))
    if not tested:
        return []
    from statsmodels.stats.multitest import multipletests  # noqa: PLC0415 -- slow to import

    _, adjusted, _, _ = multipletests(special.chdtrc(1, [row[3] for row in tested]), method="holm")
    return [
        DifferentialItem(
            statement=name, deployment=deployment, log_odds_ratio=ratio, chi_square=square, p_holm=float(p)
        )
        for (name, deployment, ratio, square), p in zip(tested, adjusted, strict=True)
        if p <= alpha
    ]


def short_form(
    statements: Sequence[str],
    categories: Sequence[str],
    deployments: Sequence[str],
    endorsed: Floats,
    *,
    keeps: float = KEEPS_RANKS,
    seed: int = 0,
) -> ShortForm | Insufficient:
    """Propose a small set of items that keeps the deployments' ranks, and check it on responses that did not choose it.

    The respondents of each deployment are split at random into two halves. The first half chooses: a quarter of all
    respondents orders the items (within each category by discrimination times the standard deviation of the answers;
    the categories take turns), the next quarter tells the smallest number of them, at least one of each category, that
    keeps the ranks in nine of ten bootstrap samples. The second half only checks.

    Parameters
    ----------
    statements, categories
        Names and categories of the items, I of each.
    deployments
        The deployment of each respondent, R of them.
    endorsed
        Shape [R, I]: 1, 0 or NaN.
    keeps
        The smallest rank correlation, above 0 and at most 1.
    seed
        Seed of the split.

    Returns
    -------
    ShortForm or Insufficient
        Insufficient with fewer than ``MIN_DEPLOYMENTS`` deployments, if no form keeps the ranks of the half that
        chooses, or if the chosen form does not keep the ranks on the other half.
    """
    names = sorted(set(deployments))
    if len(names) < MIN_DEPLOYMENTS:
        return Insufficient(reason=f"needs {MIN_DEPLOYMENTS} deployments, has {len(names)}")
    who = np.asarray(deployments)
    rng = np.random.default_rng(seed)
    part = _split(who, names, rng)
    order = _by_information(item_statistics(statements, endorsed[part == 0]), categories)
    sizing = [endorsed[(part == 1) & (who == name)][:, order] for name in names]
    size = _smallest(sizing, len(set(categories)), keeps, rng)
    if size is None:
        return Insufficient(reason="no form keeps the ranks in repeated samples of the half that chooses")
    form, held = order[:size], part >= 2
    short, whole = (_rates(endorsed[held][:, columns], who[held], names) for columns in (form, order))
    kept = spearman_rho(short, whole)
    if kept is None or kept < keeps:
        shown = "have no ranks" if kept is None else f"correlate by {kept:.2f}"
        return Insufficient(reason=f"on the held-out half the ranks of the {size} chosen items {shown}")
    other = _rates(endorsed[~held][:, order], who[~held], names)
    return ShortForm(
        statements=tuple(statements[column] for column in sorted(form)),
        rank_correlation=kept,
        independent_correlation=spearman_rho(short, other),
        whole_correlation=spearman_rho(whole, other),
    )


def _split(who: NDArray[np.str_], names: Sequence[str], rng: np.random.Generator) -> NDArray[np.intp]:
    """Assign the respondents of each deployment at random to four equal parts, numbered from 0."""
    part = np.empty(len(who), dtype=np.intp)
    for name in names:
        rows = rng.permutation(np.flatnonzero(who == name))
        part[rows] = np.arange(len(rows)) % 4
    return part


def _smallest(answers: Sequence[Floats], least: int, keeps: float, rng: np.random.Generator) -> int | None:
    """Return the smallest size from which on all longer forms keep the ranks in nine of ten bootstrap samples.

    Parameters
    ----------
    answers
        Answers of each deployment, shape [R, I], items in the order in which a form takes them.
    least
        The smallest size.
    """
    known = [~np.isnan(block) for block in answers]
    filled = [np.nan_to_num(block) for block in answers]
    kept = []
    for _ in range(_RESAMPLES):
        rates = []
        for here, values in zip(known, filled, strict=True):
            weight = rng.multinomial(len(values), np.full(len(values), 1 / max(1, len(values)))).astype(np.float64)
            answered = weight @ here
            item = np.divide(weight @ values, answered, out=np.zeros_like(answered), where=answered > 0)
            rates.append(np.cumsum(item) / np.maximum(np.cumsum(answered > 0), 1))
        by_size = np.transpose(rates)
        kept.append(spearman_rhos(by_size, by_size[-1]) >= keeps)  # no ranking keeps nothing
    share = np.mean(kept, axis=0)
    failing = np.flatnonzero(share < _KEPT)
    size = int(failing[-1]) + 2 if len(failing) else 1
    return max(size, least) if size <= len(share) else None


def _by_information(items: Sequence[Item], categories: Sequence[str]) -> list[int]:
    """Return columns by information, the best of each category first, then the second best of each."""

    def information(column: int) -> float:
        item = items[column]
        if item.difficulty is None or item.discrimination is None:
            return -1.0
        return item.discrimination * float(np.sqrt(item.difficulty * (1 - item.difficulty)))

    queues = {
        category: sorted((at for at, name in enumerate(categories) if name == category), key=information, reverse=True)
        for category in dict.fromkeys(categories)
    }
    longest = max(map(len, queues.values()), default=0)
    return [queue[rank] for rank in range(longest) for queue in queues.values() if rank < len(queue)]


def _rates(endorsed: Floats, who: NDArray[np.str_], names: Sequence[str]) -> Floats:
    """Return the mean over the items of each deployment's rate; NaN answers are left out."""
    rates = []
    for name in names:
        rows = endorsed[who == name]
        answered = (~np.isnan(rows)).sum(axis=0)
        items = np.divide(np.nansum(rows, axis=0), answered, out=np.full(rows.shape[1], np.nan), where=answered > 0)
        rates.append(float(np.nanmean(items)) if (answered > 0).any() else 0.0)
    return np.asarray(rates)


def _rest(answered: NDArray[np.bool_], known: Floats, column: int) -> Floats:
    """Return each respondent's share of endorsed items without one item; NaN where nothing else was asked."""
    count = answered.sum(axis=1) - answered[:, column]
    total = (known * answered).sum(axis=1) - known[:, column] * answered[:, column]
    shares: Floats = np.divide(total, count, out=np.full(len(answered), np.nan), where=count > 0)
    return shares


def _correlation(first: Floats, second: Floats) -> float | None:
    if len(first) < MIN_RESPONDENTS or first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _mantel_haenszel(
    focal: NDArray[np.bool_], responses: Floats, stratum: NDArray[np.intp]
) -> tuple[float, float] | None:
    """Return the common log odds ratio and the chi-square with continuity correction; None if nothing is compared."""
    observed = expected = variance = numerator = denominator = 0.0
    for level in np.unique(stratum):
        inside = stratum == level
        a = float(responses[inside & focal].sum())
        b = float((inside & focal).sum()) - a
        c = float(responses[inside & ~focal].sum())
        d = float((inside & ~focal).sum()) - c
        total = a + b + c + d
        if total < 2 or not (a + b) * (c + d):  # one group only
            continue
        observed += a
        expected += (a + b) * (a + c) / total
        variance += (a + b) * (c + d) * (a + c) * (b + d) / (total**2 * (total - 1))
        # Half a response in each cell keeps the ratio finite.
        numerator += (a + 0.5) * (d + 0.5) / (total + 2)
        denominator += (b + 0.5) * (c + 0.5) / (total + 2)
    if not variance:
        return None
    return float(np.log(numerator / denominator)), max(0.0, abs(observed - expected) - 0.5) ** 2 / variance
