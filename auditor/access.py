"""Find the address of the gateway and a key with every right, for the auditor's own requests; wait for a new key.

On one host no setting is needed: the gateway stores a secret in its folder, and a process that can read the folder
may use it. Across hosts, ``auditor.gateway`` names the address and a key made with
``biasmeter key create --allow pin,origin``.
"""

import asyncio
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from auditor.config import Config, Deployment
from auditor.config.routes import ANY_MODEL
from auditor.domain.keys import Key, new_secret
from auditor.errors import UsageError

#: Seconds without a confirmation of its keys after which no gateway is running (as `gateway.snapshot.FRESH_S`), for
#: which it may take to learn of a key, and between two looks.
_SILENT, _LONGEST_WAIT, _LOOK_EVERY = 10.0, 6.0, 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayAccess:
    """Address of the gateway and the key for it."""

    url: str  #: base URL, ending in ``/v1``
    key: str = field(repr=False)


def secret_path(config: Config) -> Path:
    """Return the path of the secret of the gateway on this host."""
    return config.data_dir / "gateway" / "audit.secret"


def make_secret(config: Config) -> str:
    """Return the secret of the gateway on this host. The first start of the gateway creates it."""
    path = secret_path(config)
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        secret = new_secret()
    # Whole under its name at once: an auditor may be reading. Two gateways never share a folder.
    unnamed = path.with_suffix(".new")
    with os.fdopen(os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(secret)
    unnamed.replace(path)
    return secret


def gateway_access(config: Config) -> GatewayAccess:
    """Return the address of the gateway and the key for it.

    Raises
    ------
    UsageError
        There is no gateway on this host, and the configuration names none.
    """
    named = config.auditor.gateway
    if named is not None:
        return GatewayAccess(url=named.url, key=named.key.get_secret_value())
    try:
        secret = secret_path(config).read_text(encoding="ascii").strip()
    except OSError:
        raise UsageError(
            f"no gateway has run with data_dir {config.data_dir} on this host; start one (biasmeter gateway or up), "
            "or set auditor.gateway: {url, key}"
        ) from None
    listen = config.gateway.listen
    host = listen.host if listen.is_loopback else "127.0.0.1"
    return GatewayAccess(url=f"http://{f'[{host}]' if ':' in host else host}:{listen.port}/v1", key=secret)


async def wait_until_known(config: Config, key: Key) -> bool | None:
    """Wait until all workers of the gateway on this host know a new key, at most six seconds.

    They do when the snapshot of the keys (`gateway.snapshot`) contains it: a worker reads the newest one before it
    refuses an unknown key, and before it serves a request without a key.

    Returns
    -------
    Whether they do; None if no gateway with a store runs on this host.
    """
    path, digest = config.data_dir / "gateway" / "keys.json", key.hash.hex().encode()
    deadline = time.monotonic() + _LONGEST_WAIT
    try:
        while time.time() - path.with_suffix(".confirmed").stat().st_mtime <= _SILENT:
            if digest in path.read_bytes():
                return True
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_LOOK_EVERY)
    except OSError:
        pass
    return None


def pinned_model(config: Config, deployment: Deployment) -> str:
    """Return the model that a call pinned to ``deployment`` asks for.

    The pin chooses the deployment, and the gateway puts the deployment's own model into the request; but it lets no
    request in whose model has no route. So it is a model that has one: of a route of the deployment, else the
    deployment's own, else that of any route.

    Raises
    ------
    UsageError
        Neither the deployment nor a route of its own names a model.
    """
    for route in config.routes:
        if route.model != ANY_MODEL and any(each.name == deployment.name for each in route.deployments):
            return route.model
    if deployment.model is None:
        raise UsageError(f"deployment {deployment.name!r} names no model to ask for; set deployments[].model")
    models = [route.model for route in config.routes]
    return deployment.model if {deployment.model, ANY_MODEL} & set(models) else models[0]
