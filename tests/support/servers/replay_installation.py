"""A whole installation before the simulator: a gateway, deployments of declared truth, judges, and stored probes."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from support.servers import commands
from support.servers.ports import free_port
from support.servers.product import Product, installation, settings

from auditor.domain.statement import Statement
from auditor.instrument.pool import record_of, shipped_pool
from auditor.simulate.config import LoadedScenario
from auditor.simulate.config import load as load_scenario

#: Six of each category.
STATEMENTS = tuple(one for number in range(60) for one in [shipped_pool()[number % 10 * 10 + number // 10]])
TEXTS = tuple(one.statement for one in STATEMENTS)

_PLAIN = {"neutral_share": 0.1, "refuse_share": 0.0, "abstain": 0.0, "bare_given_a": 0.1, "bare_given_not_a": 0.1}
SCENARIO: dict[str, Any] = {
    "seed": 3,
    "statements": "statements.jsonl",
    "deployments": [
        {
            "name": "swayed",
            "tasks": {
                "BJ": {"p_a": 0.15, "p_b_given_a": 0.7, "p_b_given_not_a": 0.1, **_PLAIN},
                "CTO": {"p_a": 0.6, "p_b_given_a": 0.3, "p_b_given_not_a": 0.05, **_PLAIN},
                "SC": {"p_a": 0.3, "p_b_given_a": 0.6, "p_b_given_not_a": 0.1, **_PLAIN},
            },
            "latency": {"first_token": 0.02},
        },
        {"name": "other"},
    ],
    "judges": [{"name": "north", "accuracy": 0.97}, {"name": "east", "accuracy": 0.95}],
}


@contextmanager
def world(
    folder: Path,
    database_url: str,
    *,
    scenario: Mapping[str, Any] = SCENARIO,
    statements: Sequence[Statement] = STATEMENTS,
    beside: Sequence[Mapping[str, Any]] = (),
    command: str = "gateway",
    **changes: Any,
) -> Iterator[tuple[Product, LoadedScenario]]:
    """An installation whose deployments are simulated, all but those `beside`; `command` runs until the block ends."""
    with (folder / "statements.jsonl").open("w") as file:
        file.writelines(json.dumps(record_of(one)) + "\n" for one in statements)
    (folder / "scenario.yaml").write_text(yaml.safe_dump(dict(scenario)))
    port = free_port()
    made = settings(f"http://127.0.0.1:{port}/v1", workers=1)
    deployments = [one["name"] for one in [*scenario["deployments"], *scenario["judges"]]]
    made["deployments"] = [
        {"name": name, "base_url": f"http://127.0.0.1:{port}/v1", "model": name} for name in deployments
    ]
    made["deployments"][0]["price"] = {"input": 1.0, "output": 2.0}
    made["deployments"] += beside
    made["routes"] = [
        {"model": "app", "deployments": ["swayed"], "capture": "full"},
        {"model": "else", "deployments": ["other"]},
        {"model": "*", "deployments": ["swayed"]},
    ]
    made["judges"] = [{"name": judge["name"], "deployment": judge["name"]} for judge in scenario["judges"]]
    with installation(folder, made | changes, database_url) as product:
        until = r"http://127\.0\.0\.1:\d+/v1"
        simulator = product.start_unconfigured(
            "simulate", "-c", str(folder / "scenario.yaml"), "--port", str(port), until=until
        )
        try:
            with product.running(command):
                yield product, load_scenario(folder / "scenario.yaml")
        finally:
            simulator.stop()


def audit(product: Product, *options: str) -> None:
    """Send a plan of probes to the swayed deployment, with the product's own command."""
    product.run(
        *("audit", "run", "-c", str(product.config), "--deployment", "swayed", "--yes"),
        *("--statements", str(product.folder / "statements.jsonl"), *options),
    )


def replay_arguments(product: Product, *options: str) -> list[str]:
    """The replay's command line."""
    return ["replay", "-c", str(product.config), "-o", str(product.folder / "out"), *options]


def start_replay(product: Product, *options: str) -> commands.Command:
    """Begin a replay, to be killed."""
    with Path(os.devnull).open("wb") as nothing:
        command = commands.start(
            replay_arguments(product, *options),
            environment=product._environ(),
            folder=product.folder,
            stdout=nothing.fileno(),
            stderr=nothing.fileno(),
        )
    product.started.append(command)
    return command


def document(product: Product) -> dict[str, Any]:
    """What the last replay wrote."""
    return dict(json.loads((product.folder / "out" / "comparison.json").read_text()))
