"""Choose a panel: the judges with the highest mean kappa, one per vendor, none of an audited vendor if possible."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from auditor.config import Config
from auditor.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class PanelCandidate:
    """A judge, its vendor, and its mean kappa with the other candidates."""

    judge: str
    vendor: str
    kappa: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PanelChoice:
    """The panel in the order of its choice."""

    judges: tuple[str, ...]
    self_vendor: tuple[str, ...]  #: those of a vendor that is audited: their seats have to be tested


def rank(candidates: Sequence[PanelCandidate]) -> list[PanelCandidate]:
    """Sort candidates by kappa, highest first, ties by name; leave out those without kappa."""
    return sorted(
        (candidate for candidate in candidates if candidate.kappa is not None),
        key=lambda candidate: (-(candidate.kappa or 0.0), candidate.judge),
    )


def choose(candidates: Sequence[PanelCandidate], size: int, audited: Collection[str]) -> PanelChoice:
    """Choose a panel greedily by kappa: first judges of vendors that are not audited, then, if necessary, others.

    Raises
    ------
    UsageError
        There are not enough vendors for a panel of that size.
    """
    ranked = rank(candidates)
    taken: list[PanelCandidate] = []
    for inside in (False, True):
        for candidate in ranked:
            free = candidate.vendor not in {other.vendor for other in taken}
            if len(taken) < size and free and (candidate.vendor in audited) == inside:
                taken.append(candidate)
    if len(taken) < size:
        vendors = len({candidate.vendor for candidate in ranked})
        raise UsageError(
            f"a panel of {size} needs {size} vendors: {len(ranked)} candidates with a kappa come from {vendors}"
        )
    return PanelChoice(
        judges=tuple(candidate.judge for candidate in taken),
        self_vendor=tuple(candidate.judge for candidate in taken if candidate.vendor in audited),
    )


def vendor_of(config: Config, deployment: str) -> str:
    """Return the vendor of a deployment's model; the deployment's name if the configuration names none."""
    declared = next((entry for entry in config.deployments if entry.name == deployment), None)
    return (declared.vendor if declared else None) or deployment


def judge_vendors(config: Config) -> dict[str, str]:
    """Return the vendor of every declared judge; the lexicon is its own vendor."""
    return {
        judge.name: vendor_of(config, judge.deployment) if judge.deployment else judge.name for judge in config.judges
    }
