"""``biasmeter deploy-files``: write the files of a deployment, which the package carries."""

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from auditor.errors import AuditError, UsageError
from auditor.postgres.folder import make_public_folder

app = typer.Typer()

#: What is written of ``deploy/``; an installation has nothing else there, a checkout has.
PARTS: Final = (
    ".env.example",
    "biasmeter.yaml",
    "compose.yaml",
    "grafana/dashboards",
    "grafana/provisioning",
    "kubernetes",
    "prometheus",
    "systemd",
)
#: Compose builds images in a checkout only; elsewhere they have to exist.
_BUILD: Final = re.compile(r"^ +build: .*\n", re.MULTILINE)


@app.command("deploy-files")
def _deploy_files(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder to write; it may exist.")],
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there and differ.")] = False,
) -> None:
    """Write the files of a deployment: dashboards, Prometheus rules, Compose, systemd units, Kubernetes manifests."""
    files = _files()
    differing = [name for name, text in files.items() if _differs(out / name, text)]
    if differing and not force:
        raise UsageError(f"{out / differing[0]}: exists with other content; nothing was written (--force replaces it)")
    for name, text in files.items():
        path = out / name
        try:
            make_public_folder(path.parent)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o644)  # containers of other users read it, and it holds no secret
        except OSError as error:
            raise AuditError(f"{path}: cannot be written: {error.strerror}") from None
    typer.echo(f"{out}: {len(files)} files: {', '.join(PARTS)}")


def _files() -> dict[str, str]:
    """Return the content of each file, by its path below the folder."""
    source = Path(__file__).parents[1] / "deploy"
    if not source.is_dir():  # a checkout
        source = Path(__file__).parents[2] / "deploy"
    paths = [path for part in PARTS for path in sorted((source / part).rglob("*"))] + [source / part for part in PARTS]
    contents = {str(path.relative_to(source)): path.read_text("utf-8") for path in paths if path.is_file()}
    contents["compose.yaml"] = _BUILD.sub("", contents["compose.yaml"])
    return dict(sorted(contents.items()))


def _differs(path: Path, text: str) -> bool:
    try:
        return path.read_text("utf-8") != text
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError):
        return True
