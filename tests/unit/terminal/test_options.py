"""Options that several commands share: periods and days, absolute or relative."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.main import get_command

from auditor.errors import UsageError
from biasmeter.commands.main import app
from biasmeter.terminal.options import read_day, read_period
from replay.selection import read_selection


def near(moment: datetime | None, expected: datetime) -> bool:
    return moment is not None and abs(moment - expected) < timedelta(minutes=5)


def test_the_last_days_are_a_period() -> None:
    now = datetime.now(UTC)
    since, until = read_period(None, None, "7d")
    assert near(since, now - timedelta(days=7))
    assert near(until, now)
    selected = read_selection("deployment=a,last=2w")
    assert near(selected.since, now - timedelta(weeks=2))
    assert near(selected.until, now)


@pytest.mark.parametrize("text", ["last=7d,from=2026-03-01", "last=7d,to=now", "last=x", "from=now,to=7d"])
def test_a_period_of_a_selection_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--select: (last|from)"):
        read_selection(text)


def test_a_day_may_be_relative() -> None:
    today = datetime.now(UTC).date()
    assert read_day("--since", "2026-03-01").isoformat() == "2026-03-01"
    assert read_day("--since", "3d") in {today - timedelta(days=3), datetime.now(UTC).date() - timedelta(days=3)}
    assert read_day("--since", None) is None
    with pytest.raises(UsageError, match="--since 'soon' is not a date"):
        read_day("--since", "soon")


def test_each_command_with_a_period_also_takes_the_last_days() -> None:
    def leaves(command: Any) -> list[Any]:
        below = getattr(command, "commands", None)
        return [command] if below is None else [leaf for one in below.values() for leaf in leaves(one)]

    for command in leaves(get_command(app)):
        options = {name for option in command.params for name in option.opts}
        metavars = {option.metavar for option in command.params if option.opts == ["--to"]}
        if "--from" in options or "WHEN" in metavars:
            assert "--last" in options, command.name
