"""The Kubernetes manifests: accepted by the API's schemas, and as the containers, ports and drains are."""

import json
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest
import yaml
from support.documents.deployed_rules import DEPLOY
from support.lazy_imports import ImportedLater

from auditor.config import GatewayConfig, load

kubernetes_validate = ImportedLater("kubernetes_validate")
FOLDER = DEPLOY / "kubernetes"
#: The versions that a supported cluster may have.
VERSIONS = ("1.31", "1.34")


@cache
def manifests() -> dict[tuple[str, str], dict[str, Any]]:
    """Return what kustomize builds, by kind and name."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    built = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=True).stdout
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(built)}


def pod(kind: str, name: str) -> dict[str, Any]:
    return manifests()[kind, name]["spec"]["template"]["spec"]


PODS = (
    ("StatefulSet", "biasmeter-gateway"),
    ("Deployment", "biasmeter-auditor"),
    ("Job", "biasmeter-migrate"),
)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_object_fits_the_schema_of_its_kind(version: str) -> None:
    for manifest in manifests().values():
        kubernetes_validate.validate(json.loads(json.dumps(manifest)), version, strict=True)


@pytest.mark.parametrize(("kind", "name"), PODS)
def test_a_pod_is_restricted_and_gets_its_configuration(kind: str, name: str) -> None:
    spec = pod(kind, name)
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 10001
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
    }  # fmt: skip
    assert container["image"].endswith(":0.1.0")
    assert container["args"][1:] == ["-c", "/etc/biasmeter/biasmeter.yaml"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"config": "/etc/biasmeter", "data": "/var/lib/biasmeter", "tmp": "/tmp"}
    (config,) = [volume["configMap"]["name"] for volume in spec["volumes"] if volume["name"] == "config"]
    assert list(manifests()["ConfigMap", config]["data"]) == ["biasmeter.yaml"]


def test_only_the_gateway_gets_the_keys_of_deployments() -> None:
    (gateway,) = pod("StatefulSet", "biasmeter-gateway")["containers"]
    assert gateway["envFrom"] == [{"secretRef": {"name": "biasmeter"}}]
    for kind, name in PODS[1:]:
        (container,) = pod(kind, name)["containers"]
        assert "OPENAI_API_KEY" not in {variable["name"] for variable in container["env"]}


def test_a_gateway_ends_within_its_grace() -> None:
    spec = pod("StatefulSet", "biasmeter-gateway")
    (container,) = spec["containers"]
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert spec["terminationGracePeriodSeconds"] >= pause + GatewayConfig().drain + 20
    ready = container["readinessProbe"]
    assert ready["httpGet"]["path"] == "/readyz"
    assert ready["periodSeconds"] * ready["failureThreshold"] <= pause
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_the_configuration_is_that_of_compose_with_another_name_of_the_gateway() -> None:
    environment = {
        "BIASMETER_DATABASE_URL": "postgresql://h/d", "BIASMETER_AUDITOR_KEY": "k", "OPENAI_API_KEY": "k",
    }  # fmt: skip
    here, there = (load(folder / "biasmeter.yaml", environment) for folder in (FOLDER, DEPLOY))
    assert here.auditor.gateway is not None
    assert here.auditor.gateway.url == "http://biasmeter-gateway:4000/v1"
    assert here.deployments == there.deployments
    assert here.gateway == there.gateway
    example = (FOLDER / "secret.example.env").read_text()
    assert {line.split("=")[0] for line in example.splitlines() if not line.startswith("#")} == set(environment)


def test_services_budgets_policies_and_the_autoscaler_select_what_runs() -> None:
    built = manifests()
    for kind, name in PODS:
        labels = built[kind, name]["spec"]["template"]["metadata"]["labels"]
        policy = built["NetworkPolicy", name]["spec"]
        assert policy["podSelector"]["matchLabels"].items() <= labels.items()
        assert policy["policyTypes"] == ["Ingress", "Egress"]
    for name in ("biasmeter-gateway", "biasmeter-auditor"):
        service = built["Service", name]["spec"]
        assert service["selector"] == {"app.kubernetes.io/name": name}
    target = built["HorizontalPodAutoscaler", "biasmeter-gateway"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) in built
    budget = built["PodDisruptionBudget", "biasmeter-gateway"]["spec"]
    assert budget["selector"]["matchLabels"] == {"app.kubernetes.io/name": "biasmeter-gateway"}
