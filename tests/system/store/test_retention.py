"""``biasmeter retention`` lists what is due, removes it, and then has nothing to do."""

from datetime import UTC, datetime, timedelta

import asyncpg
from support.servers.product import Product
from support.stores.aged_store import add_day, day_of_exchanges, open_store
from support.stores.audited_store import fetch, ship
from support.stores.exchanges import exchange


async def test_the_command_lists_and_then_removes(product: Product, migrated_url: str) -> None:
    today = datetime.now(UTC).date()
    connection = await asyncpg.connect(migrated_url)
    try:
        store = await open_store(connection)
        for age in (0, 40, 500):
            await add_day(store, today - timedelta(days=age))
    finally:
        await connection.close()
    arguments = ("retention", "-c", str(product.config))
    listed = product.run(*arguments, "--dry-run").stdout.splitlines()
    assert await fetch(migrated_url, "SELECT count(*) FROM exchanges") == [(12,)]
    assert listed[0].split() == ["what", "rows", "bytes", "why"]
    words = {line.split()[0]: line for line in listed}
    content, facts = f"{today - timedelta(days=40):%Y%m%d}", f"{today - timedelta(days=500):%Y%m%d}"
    assert "content older than 30d (before " in words[f"exchange_content_{content}"]
    assert words[f"exchanges_{facts}"].split()[1] == "4"
    assert "facts older than 400d (before " in words[f"exchanges_{facts}"]
    assert f"exchanges_{content}" not in words
    assert f"exchange_content_{today:%Y%m%d}" not in words
    removed = product.run(*arguments).stdout.splitlines()
    assert [line.split()[:2] for line in removed] == [line.split()[:2] for line in listed]
    assert await fetch(migrated_url, "SELECT count(*) FROM exchanges") == [(8,)]
    assert await fetch(migrated_url, "SELECT count(*) FROM exchange_content") == [(4,)]
    assert product.run(*arguments).stdout.startswith("nothing is due: content is kept from ")
    before = words[f"exchanges_{facts}"].rpartition("(before ")[2].rstrip(")")
    verified = product.run("verify", "-c", str(product.config)).stdout.splitlines()
    assert verified[2] == f"0 were erased and recorded as erased, 4 more have expired (older than {before})"


async def test_much_at_once_needs_a_confirmation(product: Product, migrated_url: str) -> None:
    today = datetime.now(UTC).date()
    made = [*day_of_exchanges(today - timedelta(days=500), 120), exchange(datetime.now(UTC))]
    await ship(migrated_url, made)
    arguments = ("retention", "-c", str(product.config))
    for options in ((), ("--dry-run",)):
        kept = product.run(*arguments, *options)
        assert kept.stdout.startswith("nothing is due: ")
        held = [line.partition(" before ")[0] for line in kept.stderr.splitlines()]
        assert held == [f"biasmeter: {lifetime} of 120 exchanges of 1 days" for lifetime in ("content", "facts")], (
            kept.stderr
        )
    listed = product.run(*arguments, "--dry-run", "--yes")
    assert listed.stderr == ""
    assert f"exchanges_{today - timedelta(days=500):%Y%m%d}" in listed.stdout
    assert await fetch(migrated_url, "SELECT count(*) FROM exchanges") == [(121,)]
    assert product.run(*arguments, "--yes").stdout == listed.stdout
    assert await fetch(migrated_url, "SELECT count(*) FROM exchanges") == [(1,)]
