"""compose.yaml, the Dockerfiles and the configuration they mount: nothing is published to the world, nothing secret
is written down, and what is named is there. Images are not built here: no test machine has a container engine."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed import DEPLOY, PROMETHEUS, RULES

from auditor.config import load

ROOT = DEPLOY.parent
COMPOSE = DEPLOY / "compose.yaml"
DOCKERFILES = sorted((DEPLOY / "docker").glob("*.Dockerfile"))
SECRETS = {
    "POSTGRES_PASSWORD": "canary1",
    "GRAFANA_ADMIN_PASSWORD": "canary2",
    "OPENAI_API_KEY": "canary3",
    "TILTMETER_AUDITOR_KEY": "canary4",
}


def services() -> dict[str, dict[str, Any]]:
    return yaml.safe_load(COMPOSE.read_text())["services"]


def composer() -> list[str]:
    """The command of Docker Compose, the plugin or the program, or no test."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if (
            shutil.which(command[0])
            and subprocess.run([*command, "version"], capture_output=True, check=False).returncode == 0
        ):
            return command
    pytest.skip("Docker Compose is not installed")


def composed(environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    command = [*composer(), "-f", str(COMPOSE), "config"]
    return subprocess.run(
        command, capture_output=True, text=True, env=path | environment, cwd=DEPLOY, check=False, timeout=60
    )


def test_docker_compose_accepts_it() -> None:
    done = composed(SECRETS)
    assert done.returncode == 0, done.stderr
    shown = yaml.safe_load(done.stdout)["services"]
    assert set(shown) == {"postgres", "migrate", "gateway", "auditor", "prometheus", "grafana"}
    # Only the gateway is given the deployments' keys.
    assert [name for name, service in shown.items() if "canary3" in str(service)] == ["gateway"]


@pytest.mark.parametrize("name", ["POSTGRES_PASSWORD", "GRAFANA_ADMIN_PASSWORD", "OPENAI_API_KEY"])
def test_a_missing_secret_is_named(name: str) -> None:
    done = composed({key: value for key, value in SECRETS.items() if key != name})
    assert done.returncode != 0
    assert name in done.stderr


def test_ports_are_published_on_loopback_only() -> None:
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert set(published) == {"gateway", "auditor", "prometheus", "grafana"}
    for (port,) in published.values():
        assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)


def test_every_lasting_service_has_a_healthcheck_and_starts_again() -> None:
    for name, service in services().items():
        if name == "migrate":
            assert service["restart"] == "no"
        else:
            assert service["healthcheck"]["test"][0] == "CMD"
            assert service["restart"] == "unless-stopped"


def test_images_are_pinned_and_ours_are_built_and_hardened() -> None:
    for name, service in services().items():
        if "build" in service:
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"] is True
        else:
            assert re.fullmatch(r"[\w/.-]+:v?\d[\w.]*", service["image"]), name


def test_what_is_mounted_is_there() -> None:
    named = set(yaml.safe_load(COMPOSE.read_text())["volumes"])
    for service in services().values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in named


def test_no_secret_is_written_down() -> None:
    for service in services().values():
        for name, value in service.get("environment", {}).items():
            secret = re.search(r"KEY|PASSWORD|DATABASE_URL", name)
            assert not secret or "${" in value or value == "held-by-the-gateway"
    example = dict(
        line.split("=", 1) for line in (DEPLOY / ".env.example").read_text().splitlines() if re.match(r"[A-Z]", line)
    )
    assert set(example) == set(SECRETS)
    assert set(example.values()) == {"", "not-made-yet"}
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_configuration_is_accepted_and_asks_for_keys() -> None:
    url = services()["gateway"]["environment"]["TILTMETER_DATABASE_URL"]
    environment = SECRETS | {"TILTMETER_DATABASE_URL": re.sub(r"\$\{.*?\}", "canary1", url)}
    config = load(DEPLOY / "tiltmeter.yaml", environment)
    assert config.database_url({}) == "postgresql://tiltmeter:canary1@postgres:5432/tiltmeter"
    assert config.gateway.auth == "keys"
    assert str(config.gateway.listen) == "0.0.0.0:4000"
    assert str(config.auditor.listen) == "0.0.0.0:4001"
    assert config.auditor.gateway is not None
    assert config.auditor.gateway.url == "http://gateway:4000/v1"
    assert all(route.capture == "hashed" for route in config.routes)
    for name in ("gateway", "auditor", "migrate"):
        assert "./tiltmeter.yaml:/etc/tiltmeter/tiltmeter.yaml:ro" in services()[name]["volumes"]
        assert f"{name}-data:{config.data_dir}" in services()[name]["volumes"] or name == "migrate"


def test_what_prometheus_scrapes_is_what_runs() -> None:
    scraped = yaml.safe_load(PROMETHEUS.read_text())
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in scraped["scrape_configs"]}
    assert targets == {"tiltmeter-gateway": ["gateway:4000"], "tiltmeter-auditor": ["auditor:4001"]}


def test_prometheus_is_given_its_configuration_and_every_rule_file() -> None:
    mounted = dict(volume.split(":")[:2] for volume in services()["prometheus"]["volumes"])
    there = {DEPLOY / source: target for source, target in mounted.items() if source.startswith(".")}
    assert there == {file: f"/etc/prometheus/{file.name}" for file in (PROMETHEUS, *RULES)}


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.stem)
def test_an_image_is_made_of_what_is_here_and_runs_as_nobody_special(file: Path) -> None:
    text = file.read_text()
    lines = re.sub(r"\\\n", " ", text).splitlines()
    for line in lines:
        if line.startswith("COPY") and "--from" not in line:
            *sources, _ = line.split()[1:]
            assert all((ROOT / source).exists() for source in sources)
            allowed = file.with_name(f"{file.name}.dockerignore").read_text().split("\n")
            assert all(f"!{source}" in allowed for source in sources)
    assert all(":latest" not in line and ":" in line for line in lines if line.startswith("FROM"))
    assert "USER 10001" in lines
    (health,) = [line for line in lines if line.startswith("HEALTHCHECK")]
    assert "/healthz" in health


def test_the_gateways_image_has_no_part_of_the_audit() -> None:
    installed = {
        file.stem: re.findall(r"pip install .* (\S+)$", file.read_text(), re.MULTILINE) for file in DOCKERFILES
    }
    assert installed == {"gateway": ["."], "auditor": ['".[audit]"']}


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.stem)
def test_hadolint_accepts(file: Path) -> None:
    path = shutil.which("hadolint")
    if path is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([path, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
