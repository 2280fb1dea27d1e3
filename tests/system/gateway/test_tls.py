"""Deployments behind TLS: their certificates are checked, with the system's authorities or with those of a file."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from support.servers.certificates import make_authority
from support.servers.product import Product, installation, settings
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream

#: Deployments whose certificates cannot be accepted, and how ``biasmeter check`` words why.
REFUSED = {
    "unknown-authority": "unable to get local issuer certificate",
    "other-authority": "unable to get local issuer certificate",
    "other-name": "IP address mismatch",
    "expired": "certificate has expired",
}


@dataclass(frozen=True, slots=True)
class Served:
    """An installation in front of upstreams that speak TLS."""

    product: Product
    good: ScriptedUpstream


@pytest.fixture
async def served(tmp_path: Path, migrated_url: str) -> AsyncIterator[Served]:
    ours, other = make_authority(tmp_path, "ours"), make_authority(tmp_path, "other")
    here = "IP:127.0.0.1"
    async with (
        scripted_upstream(tls=ours.serving("good", here)) as good,
        scripted_upstream(tls=ours.serving("misnamed", "IP:127.0.0.2,DNS:models.example")) as misnamed,
        scripted_upstream(tls=ours.serving("late", here, days=-1)) as late,
    ):
        deployments = [
            {"name": "good", "base_url": good.url, "ca_file": "ours.pem"},
            {"name": "unknown-authority", "base_url": good.url},
            {"name": "other-authority", "base_url": good.url, "ca_file": str(other.ca_file)},
            {"name": "other-name", "base_url": misnamed.url, "ca_file": "ours.pem"},
            {"name": "expired", "base_url": late.url, "ca_file": "ours.pem"},
        ]
        routes = [{"model": str(one["name"]), "deployments": [one["name"]]} for one in deployments]
        whole = [one | {"model": "ordinary", "price": {"input": 1, "output": 1}} for one in deployments]
        changed = settings(good.url, workers=1, retries=0) | {"deployments": whole, "routes": routes}
        with installation(tmp_path, changed, migrated_url) as product:
            yield Served(product, good)


async def test_only_a_certificate_that_is_right_in_all_is_accepted(served: Served) -> None:
    async with aiohttp.ClientSession() as client:
        with served.product.running("gateway"):
            # In this order, so that a kept connection to the same address could do harm.
            for model in ("good", *REFUSED, "good"):
                url, body = f"{served.product.url}/v1/chat/completions", {"model": model, "messages": []}
                async with client.post(url, json=body) as answer:
                    told = await answer.json()
                if model == "good":
                    assert answer.status == 200, told
                else:
                    assert (model, answer.status, told["error"]["code"]) == (model, 502, "upstream_tls")
    assert [request.path for request in served.good.requests] == ["/v1/chat/completions"] * 2


async def test_check_says_why_a_certificate_is_refused(served: Served) -> None:
    command = ("check", "-c", str(served.product.config), "--json")
    done = await asyncio.to_thread(served.product.run, *command, check=False)
    told = {row["name"]: row["detail"] for row in json.loads(done.stdout)["rows"] if row["kind"] == "deployment"}
    assert told.pop("good").endswith(", ordinary among them")
    assert {name: why in told[name] for name, why in REFUSED.items()} == dict.fromkeys(REFUSED, True), told
    assert all(detail.startswith("its certificate is not trusted: ") for detail in told.values())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "contains no certificates (PEM)"),
        (b"not a certificate", "contains no certificates (PEM)"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "contains no certificates (PEM)"),
    ],
)
def test_a_file_without_certificates_is_told_at_the_start(product: Product, content: bytes | None, why: str) -> None:
    product.settings["deployments"][1]["ca_file"] = "missing.pem"
    product.write()
    if content is not None:
        (product.folder / "missing.pem").write_bytes(content)
    for command in ("gateway", "check"):
        done = product.run(command, "-c", str(product.config), check=False)
        assert done.returncode == 2
        assert f"deployments[1].ca_file: {why}" in done.stderr
        assert done.stderr.count("\n") == 1
