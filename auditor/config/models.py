"""Declare the gateway's sections of the configuration, and ``Config``, which holds everything.

Frozen pydantic models; ``routes`` declares deployments and routes, ``audits`` the auditor's sections, and ``loading``
reads a ``Config`` from a file.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, field_validator, model_validator

from auditor.config.audits import (
    ALL,
    LEXICON,
    Audit,
    JudgeConfig,
    Monitor,
    OtelExport,
    PanelConfig,
    ParquetExport,
    PeerDomain,
    Probe,
    Retention,
)
from auditor.config.network import Address, BaseUrl, HeaderName, PublicUrl, Secret
from auditor.config.routes import Deployment, Route, Timeouts
from auditor.config.values import (
    Bytes,
    EndpointPath,
    Name,
    PositiveBytes,
    PositiveSeconds,
    ResolvedPath,
    Seconds,
    Section,
)
from auditor.domain.trials import RESERVED_TAGS
from auditor.errors import ConfigError

DATABASE_VARIABLE: Final = "BIASMETER_DATABASE_URL"

_MIB: Final = 1024 * 1024
_DIALECTS: Final = ("postgresql://", "postgres://", "postgresql+asyncpg://")


def _normalise_database_url(url: str) -> str:
    """Return the form of a PostgreSQL URL that both asyncpg and SQLAlchemy accept."""
    for dialect in _DIALECTS:
        if url.startswith(dialect):
            return "postgresql://" + url.removeprefix(dialect)
    raise ValueError("must start with postgresql://")


def _check_database_url(secret: SecretStr) -> SecretStr:
    return SecretStr(_normalise_database_url(secret.get_secret_value()))


class StoreConfig(Section):
    """The PostgreSQL database; without a URL the embedded one under ``data_dir``."""

    url: Annotated[SecretStr, AfterValidator(_check_database_url)] | None = None


class Spool(Section):
    """The number of bytes that may wait on disk for the store, and that damaged records may take there."""

    max_bytes: PositiveBytes = 4 * 1024 * _MIB
    quarantine_max_bytes: PositiveBytes = 256 * _MIB


def _count_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class GatewayConfig(Section):
    """The settings of the gateway.

    ``auth: keys`` asks every request for a client key, except on a loopback address while no key has ever been
    created; ``auth: open`` asks for none, anywhere. ``redact`` names what is removed from the copies of client traffic.
    ``drain`` is how long requests in flight may take to finish after SIGTERM; for the first ``drain_notice`` of it new
    connections are accepted even when nothing is in flight, while load balancers notice that ``/readyz`` has changed.
    ``first_byte`` is how long a new connection may take to send something; it is checked every five seconds.
    ``upstream: reference`` sends requests with aiohttp's client instead of the gateway's own. ``other_endpoints`` lists
    further endpoints to which a POST is relayed, such as ``images/generations``: ``all``, or ``[]`` for none.
    """

    listen: Address = Address(host="127.0.0.1", port=4000)
    workers: Annotated[int, Field(ge=1, le=1024)] = Field(default_factory=_count_processors)
    auth: Literal["keys", "open"] = "keys"
    timeouts: Timeouts = Timeouts()
    spool: Spool = Spool()
    body_limit: PositiveBytes = 32 * _MIB
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    drain: Seconds = 30.0
    drain_notice: Seconds = 5.0
    first_byte: PositiveSeconds = 10.0
    capture_limit: Bytes = _MIB
    forward_headers: tuple[HeaderName, ...] = ()
    upstream: Literal["lean", "reference"] = "lean"
    tags: tuple[Name, ...] = ()
    other_endpoints: Literal["all"] | tuple[EndpointPath, ...] = "all"
    redact: tuple[Literal["keys", "email", "phone", "card"], ...] = ("keys", "email", "phone", "card")

    @field_validator("tags")
    @classmethod
    def _check_tags(cls, tags: tuple[str, ...]) -> tuple[str, ...]:
        if own := [tag for tag in tags if tag.startswith(RESERVED_TAGS)]:
            raise ValueError(f"{own[0]}: tags that begin with {RESERVED_TAGS} are the gateway's own")
        return tags


class RemoteGateway(Section):
    """A gateway on another host: its base URL and a client key with the rights ``pin`` and ``origin``."""

    url: BaseUrl
    key: Secret


class AuditorConfig(Section):
    """The address of the auditor's API and console, and its access to a gateway on another host.

    ``public_url`` is the address at which a proxy in front serves the console over TLS. With it every request needs a
    key or a session, also on a loopback address, and people can sign in through the proxy.
    """

    listen: Address = Address(host="127.0.0.1", port=4001)
    public_url: PublicUrl | None = None
    gateway: RemoteGateway | None = None


class Config(Section):
    """The whole configuration."""

    data_dir: ResolvedPath = Field(default=Path("~/.local/share/biasmeter"), validate_default=True)
    store: StoreConfig = StoreConfig()
    gateway: GatewayConfig = Field(default_factory=GatewayConfig)
    auditor: AuditorConfig = AuditorConfig()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    deployments: Annotated[tuple[Deployment, ...], Field(min_length=1)]
    routes: Annotated[tuple[Route, ...], Field(min_length=1)]
    audits: tuple[Audit, ...] = ()
    judges: tuple[JudgeConfig, ...] = ()
    panel: PanelConfig = PanelConfig()
    probes: tuple[Probe, ...] = ()
    peers: tuple[PeerDomain, ...] = ()
    monitor: Monitor = Monitor()
    retention: Retention = Retention()
    parquet: ParquetExport | None = None
    otel: OtelExport | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill_panel(cls, value: Any) -> Any:
        """Put all declared judges on the panel if it names none."""
        if not isinstance(value, dict):
            return value
        panel = {} if value.get("panel") is None else value["panel"]
        if not isinstance(panel, dict) or "judges" in panel:
            return value
        judges = value.get("judges")
        declared = judges if isinstance(judges, list | tuple) else ()
        given = (one.get("name") if isinstance(one, dict) else one for one in declared)
        names = [name for name in given if isinstance(name, str)]
        return {**value, "panel": {**panel, "judges": names or [LEXICON]}}

    #: The file that was read, as commands name it; a placeholder where none was.
    _file: str = PrivateAttr(default="FILE")

    @property
    def file(self) -> str:
        """The path of the file that it was read from, for ``-c``."""
        return self._file

    @property
    def file_argument(self) -> str:
        """The argument of ``-c`` in commands that are printed, quoted for a shell."""
        return shlex.quote(self._file)

    def from_file(self, path: Path) -> "Config":
        """Return this configuration as read from a file, which printed commands then name."""
        located = self.model_copy()
        located._file = str(path.absolute())  # noqa: SLF001 -- its own class
        return located

    @cached_property
    def config_hash(self) -> str:
        """The first 16 hex digits of the SHA-256 of the resolved content, without secrets and header values."""
        content = self.model_dump(mode="json")
        for deployment in content["deployments"]:
            deployment["headers"] = sorted(deployment["headers"])
        if content["otel"] is not None:
            content["otel"]["headers"] = sorted(content["otel"]["headers"])
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def without_upstream_keys(self) -> "Config":
        """Return this configuration, of the same hash, for a process that never asks deployments itself.

        The keys of deployments and the values of their headers are replaced by a word.
        """
        withheld = tuple(
            one.model_copy(
                update={
                    "api_key": one.api_key and SecretStr("withheld"),
                    "headers": dict.fromkeys(one.headers, "withheld"),
                }
            )
            for one in self.deployments
        )
        return self.model_copy(update={"deployments": withheld})

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of ``environ`` that do not hold the key of a deployment, for child processes."""
        keys = {one.api_key.get_secret_value() for one in self.deployments if one.api_key is not None}
        return {name: value for name, value in environ.items() if value not in keys}

    @property
    def tag_names(self) -> frozenset[str]:
        """The tags that requests may have: the gateway's list and those by which audits cluster."""
        clusters = {audit.cluster.tag for audit in self.audits if audit.cluster and audit.cluster.tag}
        return frozenset(self.gateway.tags) | clusters

    def unit_tag(self, route: Route) -> str | None:
        """Return the tag that names the units of a route's trial: its conversations; None for users."""
        if route.mitigation is None or route.mitigation.assign == "user":
            return None
        return next((one.cluster.tag for one in self.audits if one.name == route.audit and one.cluster), None)

    def trial_of(self, route: Route) -> str | None:
        """Return the id of the route's trial; None if it has none."""
        if route.mitigation is None:
            return None
        return route.mitigation.trial(self.seed, route.model, self.unit_tag(route))

    def timeouts_for(self, deployment: Deployment) -> Timeouts:
        """Return the gateway's timeouts, with those that the deployment sets itself."""
        own = deployment.timeouts
        if own is None:
            return self.gateway.timeouts
        return self.gateway.timeouts.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})

    def probed(self, probe: Probe) -> tuple[str, ...]:
        """Return the names of the deployments of a probe."""
        return tuple(one.name for one in self.deployments) if ALL in probe.deployments else probe.deployments

    def mirrored(self, route: Route) -> tuple[str, ...]:
        """Return the deployments to which a route's prompts may be mirrored; a peer may be named by its route."""
        routes = {one.model: one for one in self.routes}
        names: dict[str, None] = {}
        declared = {one.name for one in self.deployments}
        for peer in route.peers:
            expanded = [peer] if peer in declared else [one.name for one in routes[peer].deployments]
            names.update(dict.fromkeys(expanded))
        return tuple(names)

    def database_url(self, environ: Mapping[str, str]) -> str | None:
        """Return the store's URL from the file or BIASMETER_DATABASE_URL; None means the embedded store."""
        if self.store.url is not None:
            return self.store.url.get_secret_value()
        given = environ.get(DATABASE_VARIABLE)
        if not given:
            return None
        try:
            return _normalise_database_url(given)
        except ValueError as error:
            raise ConfigError(f"{DATABASE_VARIABLE}: {error}") from None
