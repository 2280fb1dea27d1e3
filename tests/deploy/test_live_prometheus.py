"""Every expression of the dashboard and of the rules gives data on a running product, scraped by a real Prometheus.

The product is gateway and auditor on one store, in front of simulated deployments that are audited and judged, and of
a scripted one that applications ask all the while: some answers are streams, some fail. An alert itself gives nothing
while all is well; the series that it compares does.
"""

import asyncio
import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from deployed import Asked, alerts, everything, found_or_skip
from product import Product, installation
from prometheus_server import Prometheus, prometheus_server
from stores import fresh_database
from upstream import upstream_process

from auditor.demo.installation import Ports, choose_ports, configuration
from auditor.instrument.pool import record_of, shipped_pool
from auditor.simulate.config import default_text

AUDITED = ("sim-tilted", "sim-cancelling")
STATEMENTS = 30
CHAT = "/v1/chat/completions"
#: What applications ask in each round: the model, and whether as a stream. `status:503` is a deployment that fails.
ROUND = (("gpt", False), ("gpt", True), ("status:503", False))
VARIABLES = {
    "origin": "probe",
    "condition": "all",
    "window": "7d",
    "fleet": "sim-tilted",
    "deployment": "sim-tilted",
}


def settings(ports: Ports, scripted: str) -> dict[str, Any]:
    """The demonstration's configuration, with a scripted deployment for applications beside the simulated ones."""
    made = configuration(ports)
    made["gateway"]["retries"] = 0
    made["deployments"].append({"name": "scripted", "base_url": scripted})
    made["routes"] += [{"model": model, "deployments": ["scripted"]} for model in ("gpt", "*")]
    return made


@contextmanager
def applications(product: Product) -> Iterator[None]:
    """Applications ask until the block ends: a rate needs requests between two scrapes."""
    over = threading.Event()

    async def ask() -> None:
        async with aiohttp.ClientSession() as client:
            while not over.is_set():
                for model, stream in ROUND:
                    asked = {
                        "model": model,
                        "stream": stream,
                        "messages": [{"role": "user", "content": "Good morning."}],
                    }
                    async with client.post(product.url + CHAT, json=asked) as answer:
                        await answer.read()
                await asyncio.sleep(0.5)

    thread = threading.Thread(target=lambda: asyncio.run(ask()))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def audit(product: Product) -> None:
    """Send the sentinel's questions to two deployments; the jobs of the auditor do the rest."""
    pool = product.folder / "statements.jsonl"
    named = [option for name in AUDITED for option in ("--deployment", name)]
    product.run("audit", "run", "-c", str(product.config), "--statements", str(pool), *named, "--share", "1", "--yes")


@contextmanager
def simulated(product: Product, port: int) -> Iterator[None]:
    pool = product.folder / "statements.jsonl"
    pool.write_text("".join(json.dumps(record_of(one)) + "\n" for one in shipped_pool()[::3][:STATEMENTS]))
    scenario = product.folder / "scenario.yaml"
    scenario.write_text(f"statements: {pool.name}\n{default_text()}")
    running = product.start_unconfigured("simulate", "-c", str(scenario), "--port", str(port), until="listening on")
    try:
        yield
    finally:
        running.stop()


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: str, template_database: str
) -> Iterator[Prometheus]:
    program = found_or_skip("prometheus")
    folder: Path = tmp_path_factory.mktemp("live")
    ports = choose_ports(0)
    targets = {
        "tiltmeter-gateway": f"127.0.0.1:{ports.gateway}",
        "tiltmeter-auditor": f"127.0.0.1:{ports.auditor}",
    }
    with (
        fresh_database(postgres_server, template_database) as url,
        upstream_process() as (scripted, _),
        installation(folder, settings(ports, scripted), url) as product,
        simulated(product, ports.simulator),
        product.running("gateway"),
        product.running("auditor", until=r"listening on"),
        applications(product),
        prometheus_server(program, folder, targets) as prometheus,
    ):
        audit(product)
        prometheus.until('up{job="tiltmeter-gateway"} == 1 and on () up{job="tiltmeter-auditor"} == 1')
        # Estimated are all of the answers, not the first few.
        whole = f'tiltmeter_coverage{{condition="all"}} and on (deployment) tiltmeter_eligible_responses > {STATEMENTS}'
        prometheus.until(f"count({whole}) >= {len(AUDITED)}", patience=90)
        time.sleep(2)
        yield prometheus


@pytest.mark.parametrize("asked", everything(), ids=lambda asked: asked.where)
def test_it_gives_data(asked: Asked, scene: Prometheus) -> None:
    found = scene.until(asked.with_variables(VARIABLES), patience=10)
    values = [float(sample["value"][1]) for sample in found]
    assert not all(math.isnan(value) for value in values)


def test_no_label_that_is_grouped_by_is_empty(scene: Prometheus) -> None:
    for asked in everything():
        for sample in scene.query(asked.with_variables(VARIABLES)):
            # A deployment without errors has no kind of error; every other name stands for something.
            labels = {name: value for name, value in sample["metric"].items() if name != "error_type"}
            assert all(labels.values()), (asked.where, labels)


def test_the_alerts_of_a_healthy_product_are_those_of_its_failing_deployment(scene: Prometheus) -> None:
    loaded = {rule["name"] for rule in scene.rules() if rule["type"] == "alerting"}
    assert loaded == {alert["alert"] for alert in alerts()}
    assert all(rule["health"] == "ok" for rule in scene.rules())
    stirred = {sample["metric"]["alertname"] for sample in scene.query('ALERTS{alertname=~"Tiltmeter.+"}')}
    assert stirred == {"TiltmeterServerErrors", "TiltmeterDeploymentFailing"}
