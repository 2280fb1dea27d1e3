"""Define the options that several commands share."""

import getpass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from auditor.domain.moments import EXAMPLES, ago, read_moment
from auditor.errors import UsageError

DEFAULT_CONFIG: Final = "biasmeter.yaml"


def _default_config() -> Path:
    return Path(DEFAULT_CONFIG)


#: ``config: ConfigOption`` (the default is in it; a parameter takes no other).
ConfigOption = Annotated[
    Path,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE",
        help="The configuration file.",
        default_factory=_default_config,
        show_default=DEFAULT_CONFIG,
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]

SinceOption = Annotated[
    str | None, typer.Option("--from", metavar="WHEN", help=f"Start of the period, UTC: {EXAMPLES}.")
]
UntilOption = Annotated[
    str | None, typer.Option("--to", metavar="WHEN", help="End of the period; this moment itself is not included.")
]
LastOption = Annotated[
    str | None, typer.Option("--last", metavar="SPAN", help="Instead of --from and --to: the last 7d, 12h or 4w.")
]

EngineOption = Annotated[
    Literal["queue", "ray"],
    typer.Option(help="queue: work in this process, as an auditor does. ray: on a Ray cluster."),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option("--ray-address", metavar="ADDRESS", help="With ray: a running cluster. Default: this machine alone."),
]
ActorsOption = Annotated[int, typer.Option(min=1, max=10_000, help="With ray: number of actors, half a core each.")]


ByOption = Annotated[str | None, typer.Option(help="Your name. Default: the name of your user on this machine.")]


def user_name() -> str | None:
    """Return the name of the user on this machine; None if the machine has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


def read_name(by: str | None) -> str:
    """Read ``--by``: who does something.

    Raises
    ------
    UsageError
        It is not given, and the machine does not know the user's name.
    """
    name = by or user_name()
    if name is None:
        raise UsageError("this machine does not know your name; give it with --by")
    return name


def read_fields(text: str, option: str = "--by") -> tuple[str, ...]:
    """Read an option that lists names of fields, separated by commas.

    Raises
    ------
    UsageError
        A name is empty, or stands there twice.
    """
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    if "" in names:
        raise UsageError(f"{option} {text!r}: an empty field name")
    if len(set(names)) < len(names):
        raise UsageError(f"{option} {text}: a field is named twice")
    return names


def read_period(since: str | None, until: str | None, last: str | None) -> tuple[datetime | None, datetime | None]:
    """Read the options of a period; a side that is not given is None.

    Raises
    ------
    UsageError
        A moment cannot be read, the start is not before the end, or ``last`` stands beside another option.
    """
    now = datetime.now(UTC)
    if last is not None:
        if since or until:
            raise UsageError("--last is the whole period: leave --from and --to out")
        try:
            return ago(last, now), now
        except ValueError:
            raise UsageError(f"--last {last!r} is not a length of time such as 7d, 12h or 4w") from None
    begin, end = _moment("--from", since, now), _moment("--to", until, now)
    if begin is not None and end is not None and begin >= end:
        raise UsageError("--from must be before --to")
    return begin, end


def read_day(option: str, text: str | None) -> date | None:
    """Read an option that takes a day, in UTC.

    Raises
    ------
    UsageError
        It cannot be read.
    """
    moment = _moment(option, text, datetime.now(UTC))
    return None if moment is None else moment.date()


def _moment(option: str, text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    try:
        return read_moment(text, now)
    except ValueError:
        raise UsageError(f"{option} {text!r} is not a date or time such as {EXAMPLES}") from None
