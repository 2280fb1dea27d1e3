"""A full disk below PostgreSQL alone, under load: copies wait in the spool, and all of them are stored afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clients.load import grown, load
from support.servers.product import STARTUP, Product, installation, settings
from support.stores.small_disks import fill, mounted
from support.upstreams.scripted_upstream import upstream_process
from support.waiting import eventually

#: Room for a new database and its write-ahead log.
DISK = "size=160m,mode=0755"


@pytest.fixture
def product() -> Iterator[Product]:
    """The whole product; its embedded store, which root's server can reach, lies on a small disk."""
    folder = Path(tempfile.mkdtemp(prefix="bias-"))
    folder.chmod(0o755)
    try:
        with (
            upstream_process() as (url, _),
            mounted(folder / "data" / "postgres", DISK),
            installation(folder, settings(url, workers=1), None) as made,
        ):
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def test_what_a_full_store_does_not_take_waits_and_is_stored(product: Product) -> None:
    with product.running("up") as running:
        async with load(product.url, connections=8) as asked:
            await grown(asked, 100)
            ballast = fill(product.data_dir / "postgres")
            await eventually(lambda: "No space left on device" in running.said(), STARTUP)
            waiting = product.spooled()
            await grown(asked, 200)
            assert product.spooled() > waiting
            ballast.unlink()
            await grown(asked, 100)
        assert asked.failures == []
        await eventually(lambda: product.spooled() == 0, STARTUP)
        assert "Traceback" not in running.said()
    with product.running("up"):  # what recovers the server, whatever the full disk has done to it
        stored = await product.stored_ids()
    assert set(asked.complete) <= set(stored)
    assert set(stored.values()) == {1}
