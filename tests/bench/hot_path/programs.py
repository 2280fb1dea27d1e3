"""The two programs in C that the measurement needs: compiled on the spot, and the upstream run."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

from bench.hot_path.processes import on_cpus
from support.servers.certificates import make_authority
from support.servers.ports import free_port

_SOURCES = Path(__file__).parent
_ELSEWHERE = "/usr/local/sbin:/usr/sbin"  # Debian keeps servers where only root's PATH looks


class NotHere(Exception):  # noqa: N818 -- a state of the machine
    """A proxy cannot be measured on this machine, and why."""


def found(program: str) -> str:
    """Give the path of a program.

    Raises
    ------
    NotHere
        It is not installed.
    """
    path = shutil.which(program) or shutil.which(program, path=_ELSEWHERE)
    if path is None:
        raise NotHere(f"{program} is not installed")
    return path


def compiled(name: str, folder: Path) -> Path:
    """Compile one of the programs into a folder.

    Raises
    ------
    NotHere
        There is no C compiler.
    """
    program = folder / name
    subprocess.run([found("cc"), "-O2", "-o", str(program), str(_SOURCES / f"{name}.c")], check=True)
    return program


@contextmanager
def upstream(folder: Path, cpu: int) -> Iterator[int]:
    """Run the upstream on one CPU until the block ends: its port."""
    program, port = compiled("upstream", folder), free_port()
    with on_cpus({cpu}):
        process = subprocess.Popen([str(program), str(port)])
    try:
        _await(port)
        yield port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def tls_front(folder: Path, upstream: int, cpu: int) -> Iterator[tuple[int, Path]]:
    """Run nginx as the upstream's TLS on one CPU until the block ends: its port, and the authority to trust.

    Raises
    ------
    NotHere
        nginx or openssl is not installed.
    """
    program, port, folder = found("nginx"), free_port(), folder / "tls"
    found("openssl")
    folder.mkdir()
    authority = make_authority(folder, "authority")
    authority.serving("deployment", "IP:127.0.0.1")
    configuration = folder / "nginx.conf"
    configuration.write_text(_TLS.substitute(port=port, upstream=upstream))
    with on_cpus({cpu}):
        process = subprocess.Popen([program, "-p", str(folder), "-c", str(configuration), "-e", "stderr"])
    try:
        _await(port)
        yield port, authority.ca_file
    finally:
        process.terminate()
        process.wait()


_TLS = Template("""\
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  keepalive_requests 1000000000; keepalive_timeout 300s; client_body_buffer_size 1m;
  upstream deployment { server 127.0.0.1:$upstream; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:$port ssl backlog=1024;
    ssl_certificate deployment.pem; ssl_certificate_key deployment.key;
    location / {
      proxy_pass http://deployment; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }
  }
}
""")


def _await(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, "the upstream does not come up"
        time.sleep(0.01)
