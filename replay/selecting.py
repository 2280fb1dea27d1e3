"""The language of ``--select``: which stored exchanges are meant. ``stored`` looks for them, ``pick`` draws."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import Final

from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.errors import UsageError

#: Whose exchanges can be asked again: what was itself asked again, judged or mirrored cannot.
ORIGINS: Final = (Origin.PROBE, Origin.CLIENT)
KEYS: Final = ("deployment", "origin", "task", "plan", "route", "from", "to", "tag.NAME", "limit", "seed", "draw")
_TAG: Final = "tag."


class Chances(StrEnum):
    """How likely each of the exchanges that fit is to be drawn, where only so many are wanted."""

    EVEN = "even"  #: all alike
    TRAFFIC = "traffic"  #: in proportion to what each stands for: an exchange kept with probability 0.05 for twenty


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which stored exchanges are meant; what is not given is not asked about."""

    deployment: str | None = None
    route: str | None = None  #: as the configuration names it, ``*`` included
    origin: Origin | None = None
    task: Task | None = None  #: as first asked; only probes have one
    plan: str | None = None  #: only probes have one
    since: datetime | None = None
    until: datetime | None = None  #: exclusive
    tags: tuple[tuple[str, str], ...] = ()  #: names and values, sorted: all of them must hold
    limit: int | None = None
    seed: int = 0  #: of the draw
    draw: Chances = Chances.EVEN

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Whose exchanges are looked at: those of clients have neither task nor plan."""
        if self.origin is not None:
            return (self.origin,)
        return ORIGINS if self.task is None and self.plan is None else (Origin.PROBE,)

    @property
    def canonical(self) -> str:
        """The selection in one spelling, whatever the order and the spelling it was given in."""
        given = {
            "deployment": self.deployment,
            "route": self.route,
            "origin": self.origin,
            "task": self.task,
            "plan": self.plan,
            "from": self.since and self.since.isoformat(),
            "to": self.until and self.until.isoformat(),
            **{_TAG + name: value for name, value in self.tags},
            "limit": self.limit,
            "seed": self.seed or None,
            "draw": self.draw if self.draw is not Chances.EVEN else None,
        }
        return ",".join(f"{key}={value}" for key, value in given.items() if value is not None)


def read_selection(text: str) -> Selection:
    """Read ``deployment=NAME,origin=probe,task=BJ,plan=ID,from=2026-03-01,to=2026-03-08,limit=200``, or ``all``.

    Times are ISO 8601, UTC unless they say otherwise; ``to`` is exclusive, so that two periods can meet. ``seed`` and
    ``draw`` say which of more than ``limit`` exchanges are taken; without a limit there is nothing to draw.

    Raises
    ------
    UsageError
        Names the part that cannot be read, and what could stand there.

    Examples
    --------
    >>> read_selection("limit=5, task=BJ").canonical
    'task=BJ,limit=5'
    """
    given = _parts(text)
    selection = Selection(
        deployment=given.get("deployment"),
        route=given.get("route"),
        origin=_origin(given.get("origin")),
        task=_task(given.get("task")),
        plan=given.get("plan"),
        since=_moment("from", given.get("from")),
        until=_moment("to", given.get("to")),
        tags=tuple(sorted((key.removeprefix(_TAG), value) for key, value in given.items() if key.startswith(_TAG))),
        limit=_whole("limit", given.get("limit"), least=1),
        seed=_whole("seed", given.get("seed"), least=0) or 0,
        draw=_chances(given.get("draw")),
    )
    if selection.limit is None and (odd := [key for key in ("seed", "draw") if key in given]):
        raise UsageError(f"--select: {odd[0]} says which are drawn, and without limit none are")
    if selection.origin is Origin.CLIENT and (selection.task or selection.plan):
        raise UsageError("--select: client traffic has no task and no plan; leave them out, or select origin=probe")
    if selection.since and selection.until and selection.since >= selection.until:
        raise UsageError("--select: from must be before to")
    return selection


def _parts(text: str) -> Mapping[str, str]:
    if text.strip() == "all":
        return {}
    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        known = key in KEYS or (key.startswith(_TAG) and key != _TAG)
        if not known or not equals:
            raise UsageError(f"--select: {part.strip()!r} is not KEY=VALUE with one of the keys {', '.join(KEYS)}")
        if not value:
            raise UsageError(f"--select: {key} has no value")
        if key in given:
            raise UsageError(f"--select: {key} is given twice")
        given[key] = value
    return given


def _origin(value: str | None) -> Origin | None:
    if value is not None and value not in ORIGINS:
        raise UsageError(f"--select: origin must be one of {', '.join(ORIGINS)}, not {value!r}")
    return Origin(value) if value is not None else None


def _task(value: str | None) -> Task | None:
    if value is None:
        return None
    for task in Task:
        if task.value.lower() == value.lower():
            return task
    raise UsageError(f"--select: task must be one of {', '.join(Task)}, not {value!r}")


def _moment(key: str, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.combine(date.fromisoformat(value), time(), UTC) if len(value) == 10 else _instant(value)
    except ValueError:
        raise UsageError(
            f"--select: {key} must be a day or a time such as 2026-03-01 or 2026-03-01T12:00, not {value!r}"
        ) from None
    return moment.astimezone(UTC)


def _instant(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _whole(key: str, value: str | None, *, least: int) -> int | None:
    if value is None:
        return None
    if not value.isascii() or not value.isdecimal() or not least <= int(value) < 2**63:
        raise UsageError(f"--select: {key} must be a whole number from {least}, not {value!r}")
    return int(value)


def _chances(value: str | None) -> Chances:
    if value is not None and value not in set(Chances):
        raise UsageError(f"--select: draw must be one of {', '.join(Chances)}, not {value!r}")
    return Chances(value) if value is not None else Chances.EVEN
