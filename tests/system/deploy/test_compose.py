"""compose.yaml, the Dockerfiles and the configuration they mount: nothing is published to the world, nothing secret
is written down, and what is named is there. Images are not built here: no test machine has a container engine."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.documents.deployed_rules import DEPLOY, PROMETHEUS, RULES

from auditor.config import load

ROOT = DEPLOY.parent
COMPOSE = DEPLOY / "compose.yaml"
DOCKERFILES = sorted((DEPLOY / "docker").glob("*.Dockerfile"))
SECRETS = {
    "POSTGRES_PASSWORD": "canary1",
    "GRAFANA_ADMIN_PASSWORD": "canary2",
    "OPENAI_API_KEY": "canary3",
    "BIASMETER_AUDITOR_KEY": "canary4",
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
        else:
            assert re.fullmatch(r"[\w/.-]+:v?\d[\w.]*", service["image"]), name
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"] is True, name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_a_service_is_on_the_networks_that_it_needs() -> None:
    members: dict[str, set[str]] = {}
    for name, service in services().items():
        for network in service["networks"]:
            members.setdefault(network, set()).add(name)
    assert members == {
        "store": {"postgres", "migrate", "gateway", "auditor"},
        "relay": {"gateway", "auditor"},
        "series": {"gateway", "auditor", "prometheus"},
        "panels": {"prometheus", "grafana"},
        "outside": {"gateway", "auditor"},
        "published": {"prometheus", "grafana"},
    }
    networks = yaml.safe_load(COMPOSE.read_text())["networks"]
    assert {name for name, network in networks.items() if not network.get("internal")} == {"outside", "published"}


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
            assert not secret or "${" in value
    example = dict(
        line.split("=", 1) for line in (DEPLOY / ".env.example").read_text().splitlines() if re.match(r"[A-Z]", line)
    )
    assert set(example) == set(SECRETS)
    assert set(example.values()) == {"", "not-made-yet"}
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_configuration_is_accepted_and_asks_for_keys() -> None:
    url = services()["gateway"]["environment"]["BIASMETER_DATABASE_URL"]
    environment = SECRETS | {"BIASMETER_DATABASE_URL": re.sub(r"\$\{.*?\}", "canary1", url)}
    config = load(DEPLOY / "biasmeter.yaml", environment)
    assert config.database_url({}) == "postgresql://biasmeter:canary1@postgres:5432/biasmeter"
    assert config.gateway.auth == "keys"
    assert str(config.gateway.listen) == "0.0.0.0:4000"
    assert str(config.auditor.listen) == "0.0.0.0:4001"
    assert config.auditor.gateway is not None
    assert config.auditor.gateway.url == "http://gateway:4000/v1"
    assert all(route.capture == "hashed" for route in config.routes)
    for name in ("gateway", "auditor", "migrate"):
        assert "./biasmeter.yaml:/etc/biasmeter/biasmeter.yaml:ro" in services()[name]["volumes"]
        assert f"{name}-data:{config.data_dir}" in services()[name]["volumes"] or name == "migrate"


def test_what_prometheus_scrapes_is_what_runs() -> None:
    scraped = yaml.safe_load(PROMETHEUS.read_text())
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in scraped["scrape_configs"]}
    assert targets == {"biasmeter-gateway": ["gateway:4000"], "biasmeter-auditor": ["auditor:4001"]}


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
    assert not pinned("gateway").keys() & {"sqlalchemy", "numpy", "scipy", "alembic"}
    assert pinned("auditor").keys() >= {"sqlalchemy", "numpy", "scipy", "alembic"} | pinned("gateway").keys()


def pinned(image: str) -> dict[str, str]:
    """Return name and version of each package that the image installs; every one must have a hash."""
    text = (DEPLOY / "docker" / f"requirements-{image}.txt").read_text()
    entries = re.findall(r"^(\S+)==(\S+)[^\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^[\w.-]+==", text, re.MULTILINE)) > 20
    return {name: version for name, version, _ in entries}


@pytest.mark.parametrize("image", ["gateway", "auditor"])
def test_an_image_installs_with_hashes_what_the_constraints_say(image: str) -> None:
    assert f"--require-hashes -r requirements-{image}.txt" in (DEPLOY / "docker" / f"{image}.Dockerfile").read_text()
    constraints = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned(image).items() <= dict(constraints).items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["dependencies"] + (project["optional-dependencies"]["audit"] if image == "auditor" else [])
    names = {re.match(r"[\w-]+", each).group().lower() for each in declared}
    assert names <= pinned(image).keys()


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda unit: unit.stem)
def test_systemd_accepts_a_unit_and_finds_little_to_harden(unit: Path, tmp_path: Path) -> None:
    command = shutil.which("systemd-analyze")
    if command is None:
        pytest.skip("systemd-analyze is not installed")
    # The program is not in /opt on this machine.
    (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/biasmeter/bin/biasmeter", "/bin/true"))
    for options in (["verify", tmp_path / unit.name], ["security", "--offline=true", "--threshold=20", unit]):
        done = subprocess.run([command, *options], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.stem)
def test_hadolint_accepts(file: Path) -> None:
    path = shutil.which("hadolint")
    if path is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([path, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
