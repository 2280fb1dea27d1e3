"""Debian's Prometheus as a process, on the project's own configuration with other targets and faster scrapes."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.documents.deployed_rules import PROMETHEUS, RULES
from support.servers.ports import free_port

_PATIENCE = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Prometheus:
    """A running server."""

    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an expression now: each has `metric` (its labels) and `value` (time, text)."""
        asked = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=10) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from None
        result: list[dict[str, Any]] = found["data"]["result"]
        return result

    def exemplars(self, expression: str) -> list[dict[str, Any]]:
        """The exemplars of the last hour: each has its `labels`."""
        asked = urllib.parse.urlencode({"query": expression, "start": time.time() - 3600, "end": time.time() + 60})
        with urllib.request.urlopen(f"{self.url}/api/v1/query_exemplars?{asked}", timeout=10) as answer:
            return [one for series in json.load(answer)["data"] for one in series["exemplars"]]

    def rules(self) -> list[dict[str, Any]]:
        """The rules it has loaded, with their `name`, `type` and `health`."""
        with urllib.request.urlopen(f"{self.url}/api/v1/rules", timeout=10) as answer:
            found = json.load(answer)
        return [rule for group in found["data"]["groups"] for rule in group["rules"]]

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that are pending or firing, with their `labels` and `annotations`."""
        with urllib.request.urlopen(f"{self.url}/api/v1/alerts", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["alerts"]
        return found

    def until(self, expression: str, patience: float = _PATIENCE) -> list[dict[str, Any]]:
        """Wait until an expression has samples."""
        deadline = time.monotonic() + patience
        while not (found := self.query(expression)):
            assert time.monotonic() < deadline, f"no data: {expression}"
            time.sleep(0.2)
        return found


@contextmanager
def prometheus_server(program: str, folder: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """Run it until the block ends; `targets` gives each scrape job's `host:port`, those it lacks are not scraped."""
    settings = yaml.safe_load(PROMETHEUS.read_text())
    settings["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    settings["rule_files"] = [str(file) for file in RULES]
    settings["scrape_configs"] = [
        {**job, "static_configs": [{"targets": [targets[job["job_name"]]]}]}
        for job in settings["scrape_configs"]
        if job["job_name"] in targets
    ]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    address = f"127.0.0.1:{free_port()}"
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        server = Prometheus(url=f"http://{address}")
        _wait_ready(server, process, folder / "prometheus.log")
        yield server
    finally:
        process.terminate()
        process.wait(_PATIENCE)


def _wait_ready(server: Prometheus, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            urllib.request.urlopen(f"{server.url}/-/ready", timeout=2).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
