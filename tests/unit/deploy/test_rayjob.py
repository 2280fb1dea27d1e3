"""The RayJob: its pods fit Kubernetes' schemas, its command is one that exists, and its Ray is the one that is tested.

KubeRay's own schema is not at hand here, and no test applies the manifest to a cluster.
"""

import shlex
from typing import Any

import pytest
import yaml
from support.documents.deployed_rules import DEPLOY
from support.lazy_imports import ImportedLater
from typer.core import TyperGroup
from typer.main import get_command

from biasmeter.commands.main import app

kubernetes_validate = ImportedLater("kubernetes_validate")
JOB: dict[str, Any] = yaml.safe_load((DEPLOY / "kubernetes" / "rayjob.yaml").read_text())
CLUSTER = JOB["spec"]["rayClusterSpec"]
WORKERS = CLUSTER["workerGroupSpecs"][0]
PODS = [CLUSTER["headGroupSpec"]["template"], WORKERS["template"]]


@pytest.mark.parametrize("version", ["1.31", "1.34"])
def test_its_pods_fit_the_schema_and_are_restricted(version: str) -> None:
    for template in PODS:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ray"}, "spec": template["spec"]}
        kubernetes_validate.validate(pod, version, strict=True)
        assert template["spec"]["securityContext"]["runAsUser"] == 10001
        assert template["spec"]["automountServiceAccountToken"] is False


def test_its_command_runs_on_the_cluster_and_there_is_a_core_for_each_two_actors() -> None:
    name, command, *options = shlex.split(JOB["spec"]["entrypoint"])
    assert name == "biasmeter"
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    context = group.commands[command].make_context(command, list(options))
    assert (context.params["engine"], context.params["ray_address"]) == ("ray", "auto")
    cores = WORKERS["replicas"] * int(WORKERS["rayStartParams"]["num-cpus"])
    assert context.params["actors"] * 0.5 == cores
    asked = WORKERS["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert asked == WORKERS["rayStartParams"]["num-cpus"]


def test_its_ray_is_the_release_that_is_tested() -> None:
    pinned = (DEPLOY.parent / "constraints.txt").read_text().split()
    assert f"ray=={CLUSTER['rayVersion']}" in pinned


def test_its_configuration_and_secret_are_the_auditors() -> None:
    auditor = next(yaml.safe_load_all((DEPLOY / "kubernetes" / "auditor.yaml").read_text()))
    expected, head = (spec["containers"][0] for spec in (auditor["spec"]["template"]["spec"], PODS[0]["spec"]))
    assert head["env"] == expected["env"]
    assert head["volumeMounts"][0] == expected["volumeMounts"][0]
