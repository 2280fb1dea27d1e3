"""Every exchange is stored once or counted as dropped, whatever fails (`support.faults.report`: at full length)."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.faults import scenarios
from support.faults.harness import FULL, Scenario, Site, account_for
from support.paths import ROOT, SUPPORT
from support.servers.certificates import make_authority
from support.servers.ports import free_port
from support.servers.product import installation, settings
from support.stores.small_disks import mounted
from support.upstreams.scripted_upstream import upstream_process

from auditor.postgres.embedded import attach

pytestmark = pytest.mark.timeout(900)

#: What waits in the spool during the longest outage must fit.
DISK = "1g" if FULL in os.environ else "128m"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The whole product with its embedded store, on a disk of its own where one can be mounted."""
    folder = tmp_path_factory.mktemp("faults")
    injected = folder / "injected"
    injected.mkdir()
    with ExitStack() as stack:
        upstream_url, _ = stack.enter_context(upstream_process())
        made = settings(upstream_url)
        ca_file = make_authority(folder, "faulty").ca_file
        tls_url = f"https://127.0.0.1:{free_port()}/v1"
        made["deployments"].append({"name": "tls", "base_url": tls_url, "model": "ordinary", "ca_file": str(ca_file)})
        made["routes"].insert(0, {"model": scenarios.TLS_MODEL, "deployments": ["tls"], "capture": "full"})
        small_disk = True
        try:
            stack.enter_context(mounted(folder / "data", f"size={DISK},nr_inodes=2000"))
        except pytest.skip.Exception:
            small_disk = False
        product = stack.enter_context(installation(folder, made, None))
        product.environment["BIASMETER_TEST_FAULTS"] = str(injected)
        product.environment["PYTHONPATH"] = f"{SUPPORT / 'faults' / 'injected'}:{ROOT}"
        running = stack.enter_context(product.running("up"))
        store = stack.enter_context(attach(product.data_dir))
        yield Site(product, running, store.url, injected, small_disk)


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda each: each.__name__)
async def test_every_exchange_is_stored_once_or_counted(site: Site, scenario: Scenario) -> None:
    await account_for(site, scenario.__name__, scenario)
