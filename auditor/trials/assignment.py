"""Trials of a route: some requests get an instruction, by the hash of who asks, and others are the control."""

from collections.abc import Sequence
from typing import Final, Literal

from auditor.domain.sampling import rank

#: How an instruction gets into a request: before everything as a system prompt, or after the question.
ArmKind = Literal["role", "task"]

#: The names of tags that the gateway writes begin so, and no configuration may declare such a tag.
RESERVED_TAGS: Final = "biasmeter_"
#: Tags of the exchanges of a trial: its id, the arm, and why the body of a request of an arm was left as it is.
TRIAL_TAG: Final = "biasmeter_trial"
ARM_TAG: Final = "biasmeter_arm"
UNTOUCHED_TAG: Final = "biasmeter_untouched"

#: The arm without an instruction.
CONTROL: Final = "control"
#: In place of an arm: the request does not say who asks.
UNASSIGNED: Final = "unassigned"
#: The value of ``UNTOUCHED_TAG`` after the arm was stopped.
STOPPED: Final = "stopped"

_RANGE: Final = 1 << 64


def assign(seed: int, route: str, unit: str, share: float, arms: Sequence[str]) -> str:
    """Return the arm of a unit, which is the same for all of its requests.

    Parameters
    ----------
    seed
        Seed of the configuration.
    route
        Model of the route: the same user has independent arms on different routes.
    unit
        User or conversation that asks.
    share
        Probability of any of the arms, in (0, 1); all have the same.
    arms
        Names of the arms.

    Examples
    --------
    >>> [assign(0, "desk", f"user {n}", 0.5, ["careful"]) for n in range(4)]
    ['careful', 'control', 'careful', 'control']
    """
    place = rank(seed, b"\0".join((b"arm", route.encode(), unit.encode("utf-8", "replace")))) / _RANGE
    return arms[int(place / share * len(arms))] if place < share else CONTROL


def stop_key(trial: str, arm: str) -> str:
    """Return the name of an arm of a trial in the list of stopped arms."""
    return f"{trial}/{arm}"
