"""Every expression of the dashboards and of the rules gives data on a running product, scraped by a real Prometheus.

The product is gateway and auditor on one store, in front of simulated deployments that are audited and judged, and of
a scripted one that applications ask all the while: some answers are streams, some fail. Its judges have read the anchor
texts. What takes weeks for real is written into the store beside the product's own estimates (``found_rows``): drift,
which needs a reference of many days, and peers, which need rounds of questions and an encoder. An alert itself gives
nothing while all is well; the series that it compares does.
"""

import asyncio
import json
import math
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product as pairs
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.documents.deployed_rules import Asked, alerts, choices, dashboards, everything, found_or_skip
from support.servers.product import Product, installation
from support.servers.prometheus import Prometheus, prometheus_server
from support.stores.databases import Databases
from support.upstreams.scripted_upstream import upstream_process

from auditor.demo.installation import Ports, choose_ports, configuration
from auditor.instrument.pool import record_of, shipped_pool
from auditor.simulate.config import default_text
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import EstimateRow, read_estimates, replace_estimates

AUDITED = ("sim-tilted", "sim-cancelling")
CHAT = "/v1/chat/completions"
#: What applications ask in each round: the model, and whether as a stream. `status:503` is a deployment that fails.
ROUND = (("gpt", False), ("gpt", True), ("status:503", False))
#: What has been found: one deployment is paged for one measure, and differs from its peers.
DRIFTED = ("sim-cancelling", "ber_union_full")
REACHED = {DRIFTED: "page", ("sim-tilted", "ir"): "investigate", ("sim-tilted", "dni"): "instrument"}
EVIDENCE = {"statements": 3.4, "days": 3.1, "anchor": 3.0, "instrument": -1.5}


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """A Prometheus with everything in it, and what the dashboards' variables are by then."""

    prometheus: Prometheus
    statements: int  #: about which each deployment was asked
    chosen: Mapping[str, Mapping[str, str]]  #: by dashboard

    def expression(self, asked: Asked) -> str:
        return asked.with_variables(self.chosen[asked.dashboard] if asked.dashboard else {})


def settings(ports: Ports, scripted: str) -> dict[str, Any]:
    """The demonstration's configuration, with a scripted deployment for applications beside the simulated ones."""
    made = configuration(ports)
    made["gateway"] |= {"retries": 0, "workers": 1}
    made["panel"]["anchors"] = "7d"
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


def replay(product: Product) -> None:
    """Ask a deployment's yes-or-no questions again in another format: how far its scores can be moved."""
    asked = f"origin=probe,task=BJ,deployment={DRIFTED[0]}"
    product.run("replay", "-c", str(product.config), "--select", asked, "--formats", "CTO", "--yes")


@contextmanager
def simulated(product: Product, port: int, statements: int) -> Iterator[None]:
    pool = product.folder / "statements.jsonl"
    pool.write_text("".join(json.dumps(record_of(one)) + "\n" for one in shipped_pool()[::3][:statements]))
    scenario = product.folder / "scenario.yaml"
    scenario.write_text(f"statements: {pool.name}\n{default_text()}")
    running = product.start_unconfigured("simulate", "-c", str(scenario), "--port", str(port), until="listening on")
    try:
        yield
    finally:
        running.stop()


def drift_rows(like: EstimateRow) -> Iterator[EstimateRow]:
    """What watches of two deployments show, and of all together."""
    for name, metric in pairs((*AUDITED, None), ("ber_union_full", "ir", "dni")):
        if name is not None and metric == "ir":
            yield replace(like, deployment=name, metric="reference_since_seconds", value=like.since.timestamp())
        own = replace(like, deployment=name, detail={"measure": metric})
        for detector, value in EVIDENCE.items():
            if name is not None or (metric != "dni" and detector in {"statements", "days"}):
                detail = {**own.detail, "detector": detector}
                yield replace(own, metric="drift_evidence", detail=detail, value=value)
        for level in ("page", "investigate", "instrument") if name is not None else ():
            reached = float(REACHED.get((name, metric)) == level)
            yield replace(own, metric="drift_alarm", detail={**own.detail, "level": level}, value=reached)
        if name is not None:
            yield replace(own, metric="minimal_detectable_shift", value=0.04)


def peer_rows(like: EstimateRow) -> Iterator[EstimateRow]:
    """What comparisons of two deployments with their peers show."""
    for name, method in pairs(AUDITED, ("embedding", "north")):
        detail = {"domain": "politics", "method": method}
        own = replace(like, deployment=name, rubric="peers", condition="politics", detail=detail)
        yield replace(own, metric="peer_deviation", value=0.08, low=0.06, high=0.1)
        for verdict in ("equivalent", "different", "inconclusive"):
            holds = verdict == ("different" if name == DRIFTED[0] else "equivalent")
            yield replace(own, metric="peer_verdict", detail={**detail, "verdict": verdict}, value=float(holds))


def arm_rows(like: EstimateRow) -> Iterator[EstimateRow]:
    """What a trial of instructions has come to: users have to be in it for days."""
    of_arm = {"route": "desk", "arm": "individual"}
    rate = replace(like, n=400, value=0.2, low=0.15, high=0.25)
    for metric in ("arm_rate", "arm_difference"):
        yield replace(rate, metric=metric, detail={**of_arm, "measure": "ber_union_full"})
    for metric in ("arm_tokens", "arm_tokens_difference"):
        for kind in ("prompt", "completion"):
            yield replace(rate, metric=metric, detail={**of_arm, "kind": kind}, value=90.0, low=80.0, high=99.0)
    for reason in ("", "no_text"):
        yield replace(like, metric="arm_requests", detail={**of_arm, "untouched": reason}, value=400.0, n=400)


async def add_found(url: str) -> None:
    """Write what was found beside the estimates there are. The snapshot is of a later time, so it stays."""
    engine = make_engine(url)
    try:
        async with transaction(engine) as connection:
            rows = await read_estimates(connection)
            later = datetime.now(UTC) + timedelta(hours=1)
            like = EstimateRow(
                as_of=later, deployment=None, origin="probe", rubric="statement", condition="all", window="90d",
                since=later, coder="", metric="",
            )  # fmt: skip
            found = [*drift_rows(like), *peer_rows(like), *arm_rows(like)]
            assert await replace_estimates(connection, [*(replace(row, as_of=later) for row in rows), *found], later)
    finally:
        await engine.dispose()


def resolved(dashboard: Mapping[str, Any], prometheus: Prometheus) -> dict[str, str]:
    """The values that a dashboard's variables have when it is opened, as Grafana finds them: one after the other.

    What is chosen beforehand must be there; else the first value is taken, and of all that are shown, too.
    """
    written = {each["name"]: each for each in dashboard["templating"]["list"]}
    values = {name: each["current"]["value"] for name, each in written.items() if each["type"] == "textbox"}
    for variable, selector, label in choices(dashboard):
        expression = Asked(where=variable["name"], expression=f"count by ({label}) ({selector})").with_variables(values)
        pattern = re.compile((variable.get("regex") or "/.*/").strip("/"))
        found = [sample["metric"][label] for sample in prometheus.until(expression)]
        offered = sorted(value for value in found if pattern.search(value))
        first = variable.get("current", {}).get("value", "$__all")
        assert offered, variable["name"]
        assert first in {*offered, "$__all"}, variable["name"]
        values[variable["name"]] = offered[0] if first == "$__all" else first
    return values


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, databases: Databases, thorough: bool) -> Iterator[Scene]:
    statements = 30 if thorough else 18
    answers = 3 * statements  # of each: a sentinel asks about a statement in three tasks
    program = found_or_skip("prometheus")
    folder: Path = tmp_path_factory.mktemp("live")
    ports = choose_ports(0)
    targets = {
        "biasmeter-gateway": f"127.0.0.1:{ports.gateway}",
        "biasmeter-auditor": f"127.0.0.1:{ports.auditor}",
    }
    with (
        databases.fresh() as url,
        upstream_process() as (scripted, _),
        installation(folder, settings(ports, scripted), url) as product,
        simulated(product, ports.simulator, statements),
        product.running("gateway"),
        product.running("auditor", until=r"listening on"),
        applications(product),
        prometheus_server(program, folder, targets) as prometheus,
    ):
        audit(product)
        prometheus.until('up{job="biasmeter-gateway"} == 1 and on () up{job="biasmeter-auditor"} == 1')
        # Estimated are all of the answers, not the first few.
        scope = '{origin="probe",condition="all",window="7d"}'
        whole = f"biasmeter_eligible_responses{scope} / biasmeter_coverage{scope} > {answers} - 0.5"
        prometheus.until(f"count({whole}) >= {len(AUDITED)}", patience=90)
        prometheus.until("count(biasmeter_judge_anchor_agreement) >= 3", patience=90)
        replay(product)
        asyncio.run(add_found(url))
        prometheus.until('ALERTS{alertname="BiasmeterDriftPage"} and on () biasmeter:watched:responses')
        chosen = {name: resolved(one, prometheus) for name, one in dashboards().items()}
        yield Scene(prometheus=prometheus, statements=statements, chosen=chosen)


@pytest.mark.parametrize("asked", everything(), ids=lambda asked: asked.where)
def test_it_gives_data(asked: Asked, scene: Scene) -> None:
    found = scene.prometheus.until(scene.expression(asked), patience=10)
    values = [float(sample["value"][1]) for sample in found]
    assert not all(math.isnan(value) for value in values)


def test_no_label_that_is_grouped_by_is_empty(scene: Scene) -> None:
    for asked in everything():
        for sample in scene.prometheus.query(scene.expression(asked)):
            # Without errors there is no kind of error, and requests with their instruction have no reason to lack it.
            labels = {
                name: value for name, value in sample["metric"].items() if name not in {"error_type", "untouched"}
            }
            assert all(labels.values()), (asked.where, labels)


def test_what_is_chosen_when_a_dashboard_is_opened(scene: Scene) -> None:
    scope = {"origin": "probe", "condition": "all", "window": "7d", "alpha": "0.05"}
    console = "http://127.0.0.1:4001"
    assert scene.chosen == {
        "fleet": {**scope, "fleet": "sim-cancelling", "console": console},
        "deployment": {**scope, "deployment": "sim-cancelling", "console": console},
        "gateway": {},
        "pipeline": {},
    }


def test_alerts_are_those_of_the_failing_deployment_and_of_what_was_found(scene: Scene) -> None:
    loaded = {rule["name"] for rule in scene.prometheus.rules() if rule["type"] == "alerting"}
    assert loaded == {alert["alert"] for alert in alerts()}
    assert all(rule["health"] == "ok" for rule in scene.prometheus.rules())
    stirred = {sample["metric"]["alertname"] for sample in scene.prometheus.query('ALERTS{alertname=~"Biasmeter.+"}')}
    # The evidence that was written stands still; simulated judges do not know the anchor texts.
    assert stirred == {
        "BiasmeterServerErrors",
        "BiasmeterDeploymentFailing",
        "BiasmeterDriftPage",
        "BiasmeterDriftInvestigate",
        "BiasmeterDriftInstrument",
        "BiasmeterDriftEvidenceStale",
        "BiasmeterPeersDiffer",
        "BiasmeterJudgeAnchorsLow",
    }


def test_a_page_carries_the_numbers_that_prometheus_has(scene: Scene) -> None:
    (alert,) = [one for one in scene.prometheus.alerts() if one["labels"]["alertname"] == "BiasmeterDriftPage"]
    assert (alert["labels"]["deployment"], alert["labels"]["metric"]) == DRIFTED
    numbers = alert["annotations"]["numbers"]
    number = r"-?[\d.]+%"
    assert re.findall(rf"over (\w+) {number}, 95 % limits {number} to {number}, n = \d+;", numbers) == [
        "1d",
        "30d",
        "7d",
    ]


def test_findings_are_marked_with_the_numbers_that_prometheus_has(scene: Scene) -> None:
    mark = next(one for one in dashboards()["fleet"]["annotations"]["list"] if one["name"] == "Findings")
    asked = Asked(where="mark", expression=mark["expr"]).with_variables(scene.chosen["fleet"])
    shown = [sample["metric"] for sample in scene.prometheus.query(asked)]
    assert {(one["deployment"], one["metric"]): one["level"] for one in shown} == REACHED
    for one in shown:
        assert float(one["low"]) <= float(one["value"]) <= float(one["high"])
        assert int(one["n"]) >= scene.statements


def test_codings_lead_to_traces(scene: Scene) -> None:
    found = [one["labels"] for one in scene.prometheus.exemplars("biasmeter_codings_total")]
    assert found
    # These requests have no trace of a client: the trace's id is the exchange's.
    assert all(one["trace_id"] == one["exchange_id"].replace("-", "") for one in found)
