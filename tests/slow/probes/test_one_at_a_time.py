"""The full design of 401 templates, with one statement: the runner and a gateway worker are killed on the way."""

from pathlib import Path

from support.servers.one_at_a_time_audit import assert_exact, audit, world

STATEMENTS = 1


async def test_one_at_a_time_is_answered_exactly_as_planned_whatever_is_killed(
    tmp_path: Path, migrated_url: str
) -> None:
    with world(tmp_path, migrated_url, STATEMENTS) as product:
        audited = await audit(product)
    assert_exact(audited, STATEMENTS)
