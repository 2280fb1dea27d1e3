"""The workflow and the hooks run what the project has."""

import os
import re

import yaml
from support.paths import ROOT


def steps_of(workflow: str) -> list[dict[str, str]]:
    """Return the steps of a workflow, which may only read the repository."""
    read = yaml.safe_load((ROOT / ".github/workflows" / workflow).read_text())
    assert read["permissions"] == {"contents": "read"}
    steps = [step for job in read["jobs"].values() for step in job["steps"]]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    return steps


def test_a_push_is_checked_by_verbs_of_the_makefile() -> None:
    runs = [step["run"] for step in steps_of("ci.yml") if "run" in step]
    assert runs == ["make check", "make costs"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{run.removeprefix('make ')}:" in makefile for run in runs)


def test_the_full_workflow_runs_the_script_of_ci_and_tests_that_exist() -> None:
    runs = [step["run"] for step in steps_of("full.yml") if "run" in step]
    assert "bash .ci/run" in runs
    scripts = {ROOT / run for run in runs if run.startswith(".ci/")}
    assert scripts == {ROOT / ".ci/interchange"}
    assert all(os.access(path, os.X_OK) for path in scripts)
    named = [path for run in runs for path in re.findall(r"tests/\S+", run)]
    assert named
    assert all((ROOT / path).exists() for path in named)


def test_a_hook_names_a_program_of_the_environment() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in repository["hooks"]} == {
        "ruff", "lint-imports", "python", "mypy"
    }  # fmt: skip
