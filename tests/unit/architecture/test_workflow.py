"""The workflow and the hooks run what the project has."""

import os
import re

import yaml
from support.paths import ROOT


def test_the_workflow_runs_the_script_of_ci_and_tests_that_exist() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    runs = [step["run"] for step in steps if "run" in step]
    assert "bash .ci/run" in runs
    scripts = {ROOT / run for run in runs if run.startswith(".ci/")}
    assert scripts == {ROOT / ".ci/interchange"}
    assert all(os.access(path, os.X_OK) for path in scripts)
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    named = [path for run in runs for path in re.findall(r"tests/\S+", run)]
    assert named
    assert all((ROOT / path).exists() for path in named)


def test_a_hook_names_a_program_of_the_environment() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in repository["hooks"]} == {
        "ruff", "lint-imports", "python", "mypy"
    }  # fmt: skip
