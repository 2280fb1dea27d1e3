"""The built wheel in a clean virtual environment, outside the checkout; and what the Dockerfiles do, in folders.

They download packages, so they run with the measurements. No container engine is needed: each instruction of a
Dockerfile is run as it is written, with the paths of the image moved below a folder.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from support.paths import ROOT
from support.servers.product_fixtures import AUTHORITY
from support.stores.postgres import remove_store

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    kept = {
        name: value
        for name, value in os.environ.items()
        # What is installed comes from a server that only the system's authorities know.
        if not name.startswith(("PYTHON", "BIASMETER", "VIRTUAL")) and value != str(AUTHORITY)
    }
    done = subprocess.run(command, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is committed or about to be, without what a build leaves behind."""
    folder = tmp_path_factory.mktemp("source")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=ROOT).split("\0")
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("editable", [False, True])
def test_an_installation_without_a_compiler_is_pure_python(source: Path, tmp_path: Path, editable: bool) -> None:
    """Also from a checkout in which another Python has compiled something before."""
    checkout = tmp_path / "checkout"
    shutil.copytree(source, checkout)
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    pip = tmp_path / "venv/bin/pip"
    if editable:
        run(pip, "install", "-q", "--no-deps", "-e", checkout, cwd=tmp_path, CC="false")
        assert not list(checkout.rglob("*.so"))
        return
    (checkout / "gateway/recording/redaction/_prefilter.cpython-39-other.so").write_bytes(b"of another machine")
    run(pip, "wheel", "-q", "--no-deps", "-w", tmp_path, checkout, cwd=tmp_path, CC="false")
    (wheel,) = tmp_path.glob("biasmeter-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with ZipFile(wheel) as contents:
        names = contents.namelist()
    assert "gateway/recording/redaction/search.py" in names
    assert not [name for name in names if name.endswith((".so", ".c"))]


def test_the_wheel_runs_the_demonstration_in_a_clean_environment(source: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    pip, biasmeter = tmp_path / "venv/bin/pip", tmp_path / "venv/bin/biasmeter"
    run(pip, "wheel", "-q", "--no-deps", "-w", tmp_path / "dist", source, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("biasmeter-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl") is (shutil.which("gcc") is None)
    run(pip, "install", "-q", "-c", source / "constraints.txt", f"{wheel}[demo]", cwd=tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    in_use = "in use" if shutil.which("gcc") else "not in use"
    assert run(biasmeter, "--version", cwd=outside).endswith(f" (optional C extension: {in_use})\n")
    run(biasmeter, "deploy-files", "-o", "deploy", cwd=outside)
    written = {path.relative_to(outside / "deploy") for path in (outside / "deploy").rglob("*") if path.is_file()}
    assert {Path("kubernetes/gateway.yaml"), Path("grafana/dashboards/fleet.json"), Path(".env.example")} < written
    try:
        said = run(biasmeter, "demo", cwd=outside, HOME=str(outside), COLUMNS="80")
    finally:
        remove_store(outside / "biasmeter-demo" / "data")
    assert " intervals contain the limit" in said
    assert max(len(line) for line in said.splitlines()) <= 80
    json.loads((outside / "biasmeter-demo" / "report.json").read_text())


def stages(image: str) -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage of a Dockerfile, with continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "deploy/docker" / f"{image}.Dockerfile").read_text())
    found: list[list[tuple[str, str]]] = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        elif word.isupper():
            found[-1].append((word, rest))
    return found


@pytest.mark.parametrize("image", ["gateway", "auditor"])
def test_an_image_s_instructions_work_in_a_folder(image: str, source: Path, tmp_path: Path) -> None:
    build, final = stages(image)
    work, opt = tmp_path / "src", tmp_path / "opt"
    work.mkdir()
    moved = {"/opt/": f"{opt}/", "/dist": f"{tmp_path}/dist"}
    for word, rest in build:
        if word == "COPY":
            *sources, target = rest.split()
            for name in sources:
                into = work / target / Path(name).name if target.endswith("/") else work / target
                into.parent.mkdir(parents=True, exist_ok=True)
                if (source / name).is_dir():
                    shutil.copytree(source / name, into)
                else:
                    shutil.copy2(source / name, into)
        elif word == "RUN":
            command = re.sub("|".join(moved), lambda found: moved[found[0]], rest)
            run("bash", "-ec", command.replace("python -m venv", f"{sys.executable} -m venv"), cwd=work)
    settings = dict(final)
    assert settings["USER"] == "10001"
    (entry,), arguments = json.loads(settings["ENTRYPOINT"]), json.loads(settings["CMD"])
    program = opt / "biasmeter/bin" / entry
    assert arguments == [image, "-c", "/etc/biasmeter/biasmeter.yaml"]
    config = tmp_path / "biasmeter.yaml"
    config.write_text(
        (source / "deploy/biasmeter.yaml").read_text().replace("/var/lib/biasmeter", str(tmp_path / "data"))
    )
    url = "postgresql://127.0.0.1:1/none"
    done = subprocess.run(
        # The image's account, if this one may become another.
        [*(["setpriv", "--reuid=10001", "--regid=10001", "--clear-groups"] if os.geteuid() == 0 else []),
         program, image, "-c", config],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BIASMETER_DATABASE_URL": url,
             "BIASMETER_AUDITOR_KEY": "k", "OPENAI_API_KEY": "k"},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    # Its own refusal, in one line: there is no store.
    assert done.returncode in {1, 2}, done.stderr
    assert "Traceback" not in done.stderr
    assert "biasmeter" in done.stderr
    (port,) = [rest for word, rest in final if word == "EXPOSE"]
    assert f':{port}"' in (source / "deploy/biasmeter.yaml").read_text()
    assert f"127.0.0.1:{port}/healthz" in settings["HEALTHCHECK"]
