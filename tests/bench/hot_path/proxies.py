"""What is measured beside the gateway: how each is started as a plain proxy with one worker, and what it lacks if not.

nginx and haproxy are taken from the machine. The others are installed on the spot, into a folder of their own.
"""

import os
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from string import Template
from time import monotonic, sleep

import yaml
from bench.hot_path.processes import on_cpus, tree
from bench.hot_path.programs import NotHere, found
from bench.hot_path.rounds import Proxy
from bench.hot_path.scenarios import MODELS, chat
from support.servers.ports import free_port

TLS_NGINX = "nginx, TLS"
#: Our own connections with nothing between them.
BARE = "bare relay"
_PATIENCE = 90.0
_INSTALLED = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "biasmeter-peers"

NGINX = Template("""\
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  client_body_buffer_size 1m; client_max_body_size 32m;
  keepalive_requests 1000000000; keepalive_timeout 300s; tcp_nodelay on;
  upstream deployment { server 127.0.0.1:$upstream; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:$port backlog=1024;
    location / {
      proxy_pass http://deployment; proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 300s;
      proxy_set_header Connection ""; proxy_set_header Authorization "Bearer sk-upstream";
    }
  }
}
""")
HAPROXY = Template("""\
global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  option http-no-delay
  http-reuse always
frontend applications
  bind 127.0.0.1:$port backlog 1024
  default_backend deployments
backend deployments
  http-request set-header Authorization "Bearer sk-upstream"
  server deployment 127.0.0.1:$upstream pool-max-conn 1024
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How a proxy is started."""

    command: list[str]
    version: str
    headers: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


Launcher = Callable[[Path, int, int], Launch]  #: of its own folder, its port and the upstream's


def nginx(folder: Path, port: int, upstream: int) -> Launch:
    program = found("nginx")
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX.substitute(port=port, upstream=upstream))
    told = _said(program, "-v").rpartition("/")[2]
    return Launch(command=[program, "-p", str(folder), "-c", str(configuration), "-e", "stderr"], version=told)


def tls_nginx(folder: Path, port: int, upstream: int) -> Launch:
    """Give nginx whose upstream speaks TLS. It keeps sessions, and checks no certificate."""
    launch = nginx(folder, port, upstream)
    configuration = folder / "nginx.conf"
    configuration.write_text(configuration.read_text().replace("http://deployment", "https://deployment"))
    return launch


def haproxy(folder: Path, port: int, upstream: int) -> Launch:
    program = found("haproxy")
    configuration = folder / "haproxy.cfg"
    configuration.write_text(HAPROXY.substitute(port=port, upstream=upstream))
    return Launch(command=[program, "-db", "-f", str(configuration)], version=_said(program, "-v").split()[2])


def bare(folder: Path, port: int, upstream: int) -> Launch:
    del folder
    return Launch(
        command=[sys.executable, "-m", "bench.hot_path.bare", str(port), str(upstream)],
        version=version("biasmeter"),
        environment={"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def litellm(folder: Path, port: int, upstream: int) -> Launch:
    python = _environment("litellm", "litellm[proxy]")
    parameters = {"api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "sk-upstream"}
    models = [{"model_name": model, "litellm_params": {"model": f"openai/{model}"} | parameters} for model in MODELS]
    configuration = folder / "litellm.yaml"
    key = f"sk-{secrets.token_hex(32)}"  # without one, or with a weak one, it refuses to start
    settings = {"general_settings": {"master_key": key}, "litellm_settings": {"telemetry": False}}
    configuration.write_text(yaml.safe_dump({"model_list": models} | settings))
    program = str(python.with_name("litellm"))
    address = ["--host", "127.0.0.1", "--port", str(port)]
    return Launch(
        command=[program, "--config", str(configuration), *address, "--num_workers", "1"],
        version=_version(python, "litellm"),
        headers={"Authorization": f"Bearer {key}"},
        environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"},
    )


def sglang_router(folder: Path, port: int, upstream: int) -> Launch:
    del folder
    python = _environment("sglang-router", "sglang-router")
    worker = ["--worker-urls", f"http://127.0.0.1:{upstream}"]
    address = ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())]
    return Launch(
        command=[str(python), "-m", "sglang_router.launch_router", *worker, *address, "--policy", "round_robin"],
        version=_version(python, "sglang-router"),
    )


def vllm_router(folder: Path, port: int, upstream: int) -> Launch:
    del folder
    python = _environment("vllm-router", "vllm-router")
    worker = ["--worker-urls", f"http://127.0.0.1:{upstream}"]
    address = ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())]
    return Launch(
        command=[str(python.with_name("vllm-router")), *worker, *address, "--policy", "round_robin"],
        version=_version(python, "vllm-router"),
    )


def portkey(folder: Path, port: int, upstream: int) -> Launch:
    del folder
    home = _INSTALLED / "portkey"
    package = home / "node_modules" / "@portkey-ai" / "gateway"
    if not package.exists():
        home.mkdir(parents=True, exist_ok=True)
        _install(found("npm"), "install", "--silent", "--prefix", str(home), "@portkey-ai/gateway")
    return Launch(
        command=[found("node"), str(package / "build" / "start-server.js"), f"--port={port}", "--headless"],
        version=str(yaml.safe_load((package / "package.json").read_text())["version"]),
        headers={"x-portkey-provider": "openai", "x-portkey-custom-host": f"http://127.0.0.1:{upstream}/v1"},
    )


#: Taken where the machine has them; the last is ours.
COMMON: dict[str, Launcher] = {"nginx": nginx, "haproxy": haproxy, BARE: bare}
#: Installed when they are asked for by name.
PEERS: dict[str, Launcher] = {
    "litellm": litellm,
    "sglang-router": sglang_router,
    "vllm-router": vllm_router,
    "portkey": portkey,
}


@contextmanager
def running(name: str, launcher: Launcher, folder: Path, upstream: int, cpu: int) -> Iterator[Proxy]:
    """Run a proxy on one CPU until the block ends; it is ready when it has answered.

    Raises
    ------
    NotHere
        It is not installed, cannot be installed, or does not come up.
    """
    folder = folder / name
    folder.mkdir()
    port = free_port()
    launch = launcher(folder, port, upstream)
    log = folder / "log"
    with log.open("wb") as output, on_cpus({cpu}):
        process = subprocess.Popen(
            launch.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **launch.environment},
            cwd=folder,
            start_new_session=True,
        )
    proxy = Proxy(
        name=name, port=port, version=launch.version, pids=lambda: tree(process.pid), headers=launch.headers
    )  # fmt: skip
    try:
        _await_answer(proxy, process, log)
        yield proxy
    finally:
        _end(process)


def _await_answer(proxy: Proxy, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = monotonic() + _PATIENCE
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-bench", **proxy.headers}
    url = f"http://127.0.0.1:{proxy.port}/v1/chat/completions"
    asked = urllib.request.Request(url, chat(MODELS[0], stream=False), headers)
    while True:
        try:
            urllib.request.urlopen(asked, timeout=10).close()
        except (OSError, urllib.error.HTTPError) as error:
            if process.poll() is not None or monotonic() > deadline:
                said = (log.read_text(errors="replace").strip().splitlines() or [""])[-1]
                raise NotHere(f"it does not come up: {error}; {said[:200]}") from None
            sleep(0.2)
        else:
            return


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).strip()


def _environment(name: str, requirement: str) -> Path:
    """The interpreter of a virtual environment in which this is installed; made when it is missing."""
    home = _INSTALLED / name
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        _install(sys.executable, "-m", "venv", "--clear", str(home))
        _install(str(python), "-m", "pip", "install", "--quiet", requirement)
        (home / "complete").touch()
    return python


def _install(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NotHere(f"it cannot be installed: {said[:200]}")


def _version(python: Path, package: str) -> str:
    return _said(str(python), "-c", f"import importlib.metadata as m; print(m.version({package!r}))")
