"""What the gateway's processes may import. Static contracts miss imports made at run time, so processes are asked."""

import subprocess
import sys

import pytest
from support.paths import ROOT

HEAVY = {
    "opentelemetry",
    "sqlalchemy",
    "alembic",
    "numpy",
    "pandas",
    "scipy",
    "statsmodels",
    "torch",
    "sentence_transformers",
    "pgqueuer",
}
DRIVERS = {"asyncpg", "psycopg", "psycopg2"}


def imported_by(statement: str) -> set[str]:
    """The top-level packages in `sys.modules` after `statement` in a fresh interpreter."""
    code = f"{statement}\nimport sys; print('\\n'.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stdout.split())


def test_a_worker_imports_no_driver_and_nothing_heavy() -> None:
    assert not imported_by("import gateway.processes.worker") & (HEAVY | DRIVERS)


@pytest.mark.parametrize(
    "module",
    [
        "gateway.processes.ship",
        "gateway.processes.supervisor",
        "biasmeter.commands.main",
        "auditor.postgres.embedded",
    ],
)
def test_no_process_of_the_gateway_imports_anything_heavy(module: str) -> None:
    assert not imported_by(f"import {module}") & HEAVY


def test_the_help_text_costs_no_heavy_import() -> None:
    lines = (
        "import sys, biasmeter.commands.main",
        "sys.argv = ['biasmeter', '--help']",
        "try:",
        "    biasmeter.commands.main.main()",
        "except SystemExit:",
    )
    statement = "\n".join((*lines, "    pass"))
    assert not imported_by(statement) & (HEAVY | DRIVERS)


def test_modules_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for package in ("biasmeter", "gateway", "auditor", "replay")
        for path in (ROOT / package).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 450
    }
    assert long == {}


def test_the_top_packages_are_a_docstring_and_nothing_else() -> None:
    for package in ("gateway", "auditor", "replay"):
        text = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
        assert text.startswith('"""')
        assert text.rstrip().endswith('"""')
        assert "import" not in text
