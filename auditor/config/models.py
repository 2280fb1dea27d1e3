"""Declare the gateway's sections of the configuration, and ``Config``, which holds everything.

Frozen pydantic models; ``routes`` declares deployments and routes, ``audits`` the auditor's sections, and ``loading``
reads a ``Config`` from a file.
"""

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
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
from auditor.errors import ConfigError
from auditor.trials.assignment import RESERVED_TAGS

DATABASE_VARIABLE: Final = "BIASMETER_DATABASE_URL"

#: Stands in place of a deployment's secrets where they are not needed.
WITHHELD: Final = "withheld"

_MIB: Final = 1024 * 1024
_DATABASE_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]*\]|[^:@\[\]]*)(?::\d{1,5})?", re.ASCII)
_DIALECTS: Final = ("postgresql://", "postgres://", "postgresql+asyncpg://")


def _normalise_database_url(url: str) -> str:
    """Return the form of a PostgreSQL URL that both asyncpg and SQLAlchemy accept.

    The drivers name parts of a URL that they cannot split, and these may be parts of its password.
    """
    dialect = next((dialect for dialect in _DIALECTS if url.startswith(dialect)), None)
    if dialect is None:
        raise ValueError("must start with postgresql://")
    rest = url.removeprefix(dialect)
    hosts = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    if not all(_DATABASE_HOST.fullmatch(host) for host in hosts.split(",")):
        raise ValueError("is not a URL of PostgreSQL; in a password write / as %2F, ? as %3F, # as %23 and @ as %40")
    return "postgresql://" + rest


def _check_database_url(secret: SecretStr) -> SecretStr:
    return SecretStr(_normalise_database_url(secret.get_secret_value()))


class StoreConfig(Section):
    """The PostgreSQL database, which may be the embedded one under ``data_dir``."""

    url: Annotated[SecretStr, AfterValidator(_check_database_url)] | None = None
    """The server's ``postgresql://`` URL; absent: that of ``BIASMETER_DATABASE_URL``, else the embedded server."""


class Spool(Section):
    """The limits of what waits on disk for the store, and of damaged records there."""

    max_bytes: PositiveBytes = 4 * 1024 * _MIB
    """How much may wait on disk for the store; beyond it copies are dropped and counted, and requests are served as
    before."""
    quarantine_max_bytes: PositiveBytes = 256 * _MIB
    """How much damaged records may take on disk; beyond it the oldest of them are removed."""


def _count_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class GatewayConfig(Section):
    """The gateway: where it listens, how it treats requests, and what copies it keeps."""

    listen: Address = Address(host="127.0.0.1", port=4000)
    """Where applications reach the gateway; ``:4000`` means all interfaces."""
    workers: Annotated[int, Field(ge=1, le=1024)] = Field(default_factory=_count_processors)
    """How many processes serve clients; absent: one for each core."""
    auth: Literal["keys", "open"] = "keys"
    """``keys`` asks every request for a client key, except on a loopback address while no key has ever been created;
    ``open`` asks for none, anywhere."""
    timeouts: Timeouts = Timeouts()
    """The timeouts of every deployment that does not set its own."""
    spool: Spool = Spool()
    """The limits of the copies that wait on this host's disk for the store."""
    body_limit: PositiveBytes = 32 * _MIB
    """The largest body of a request; a larger one gets 413."""
    body_timeout: PositiveSeconds = 300.0
    """How long the body of a request may take to arrive; a slower one gets 408."""
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """How often a failed request is tried again before the client has received a byte; audit traffic is never retried
    here."""
    drain: Seconds = 30.0
    """How long requests in flight may take to finish after SIGTERM; then they end with an error."""
    drain_notice: Seconds = 5.0
    """How long new connections are accepted after SIGTERM even when nothing is in flight, so that load balancers see
    that ``/readyz`` has changed."""
    first_byte: PositiveSeconds = 10.0
    """How long a new connection may take to send something before it is closed; checked every five seconds."""
    capture_limit: Bytes = _MIB
    """How much of each request and of each answer a copy holds on routes with ``capture: full``."""
    forward_headers: tuple[HeaderName, ...] = ()
    """Further headers of a client's request that are sent to the deployment."""
    tags: tuple[Name, ...] = ()
    """Names of the tags in ``x-biasmeter-tags`` that are stored with a copy; others are dropped, except those by which
    audits cluster."""
    other_endpoints: Literal["all"] | tuple[EndpointPath, ...] = "all"
    """Further paths below ``/v1/`` to which a POST is relayed without a copy, such as ``images/generations``: a list,
    ``all``, or ``[]`` for none."""
    redact: tuple[Literal["keys", "email", "phone", "card"], ...] = ("keys", "email", "phone", "card")
    """What is removed from the copies of clients' traffic; ``[]`` removes nothing."""

    @field_validator("tags")
    @classmethod
    def _check_tags(cls, tags: tuple[str, ...]) -> tuple[str, ...]:
        if reserved := [tag for tag in tags if tag.startswith(RESERVED_TAGS)]:
            raise ValueError(f"{reserved[0]}: tags that begin with {RESERVED_TAGS} are the gateway's own")
        return tags


class RemoteGateway(Section):
    """A gateway on another host."""

    url: BaseUrl
    """Its base URL, as the auditor reaches it."""
    key: Secret
    """A client key of it with the rights ``pin`` and ``origin``."""


class AuditorConfig(Section):
    """The auditor's API and console, and its access to a gateway on another host."""

    listen: Address = Address(host="127.0.0.1", port=4001)
    """Where the API and the console are served; beyond a loopback address requests need a key or a session."""
    public_url: PublicUrl | None = None
    """The address at which a proxy in front serves the console over TLS: people can then sign in, and requests need a
    key or a session; absent: on a loopback address they need neither, elsewhere a key."""
    gateway: RemoteGateway | None = None
    """The gateway for probes, judges and peers; absent: the one on this host, with the secret in ``data_dir``."""


class Config(Section):
    """The whole configuration."""

    data_dir: ResolvedPath = Field(default=Path("~/.local/share/biasmeter"), validate_default=True)
    """The folder of the spool, of the gateway's secret and of the embedded store; each gateway needs one of its own."""
    store: StoreConfig = StoreConfig()
    """The PostgreSQL database of exchanges, codings and estimates."""
    gateway: GatewayConfig = Field(default_factory=GatewayConfig)
    """The gateway that applications send their requests to."""
    auditor: AuditorConfig = AuditorConfig()
    """The auditor that serves the API and the console."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """The number from which repeatable random choices follow, such as sampling and the arms of trials; another seed
    makes other choices and other plans."""
    deployments: Annotated[tuple[Deployment, ...], Field(min_length=1)]
    """The servers that can be asked."""
    routes: Annotated[tuple[Route, ...], Field(min_length=1)]
    """The models that applications can ask for."""
    audits: tuple[Audit, ...] = ()
    """How the answers of applications are read."""
    judges: tuple[JudgeConfig, ...] = ()
    """The judges that can be put on the panel or score answers of peers."""
    panel: PanelConfig = PanelConfig()
    """The judges whose majority labels elaborations."""
    probes: tuple[Probe, ...] = ()
    """The plans of probes that the auditor repeats; without a ``sentinel`` or ``panel`` plan drift is not monitored."""
    peers: tuple[PeerDomain, ...] = ()
    """The domains of questions by which deployments are compared; none: no deployment is asked for a comparison."""
    monitor: Monitor = Monitor()
    """The settings of estimates and of drift monitoring."""
    retention: Retention = Retention()
    """How long data are kept."""
    parquet: ParquetExport | None = None
    """A copy of the store in Parquet files; absent: none is made, unless a command asks for it."""
    otel: OtelExport | None = None
    """The OpenTelemetry collector that gets spans and codings; absent: nothing is sent."""

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
        listed = (judge.get("name") if isinstance(judge, dict) else judge for judge in declared)
        names = [name for name in listed if isinstance(name, str)]
        return {**value, "panel": {**panel, "judges": names or [LEXICON]}}

    #: The file that was read, as commands name it; a placeholder where none was.
    _file: str = PrivateAttr(default="FILE")
    #: The variables of the environment that the file names for secrets of deployments.
    _upstream_variables: frozenset[str] = PrivateAttr(default=frozenset())

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

    def with_upstream_variables(self, names: Iterable[str]) -> "Config":
        """Return this configuration with the variables that hold secrets of deployments."""
        noted = self.model_copy()
        noted._upstream_variables = frozenset(names)  # noqa: SLF001 -- its own class
        return noted

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
        word = SecretStr(WITHHELD)
        withheld = tuple(
            deployment.model_copy(
                update={
                    "api_key": deployment.api_key and word,
                    "headers": dict.fromkeys(deployment.headers, word),
                }
            )
            for deployment in self.deployments
        )
        return self.model_copy(update={"deployments": withheld})

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of ``environ`` that hold no secret of a deployment, for child processes."""
        keys = {
            deployment.api_key.get_secret_value() for deployment in self.deployments if deployment.api_key is not None
        }
        return {
            name: value for name, value in environ.items() if name not in self._upstream_variables and value not in keys
        }

    @property
    def tag_names(self) -> frozenset[str]:
        """The tags that requests may have: the gateway's list and those by which audits cluster."""
        clusters = {audit.cluster.tag for audit in self.audits if audit.cluster and audit.cluster.tag}
        return frozenset(self.gateway.tags) | clusters

    def unit_tag(self, route: Route) -> str | None:
        """Return the tag that names the units of a route's trial: its conversations; None for users."""
        if route.mitigation is None or route.mitigation.assign == "user":
            return None
        return next((audit.cluster.tag for audit in self.audits if audit.name == route.audit and audit.cluster), None)

    def trial_of(self, route: Route) -> str | None:
        """Return the id of the route's trial; None if it has none."""
        if route.mitigation is None:
            return None
        return route.mitigation.trial(self.seed, route.model, self.unit_tag(route))

    def timeouts_for(self, deployment: Deployment) -> Timeouts:
        """Return the gateway's timeouts, with those that the deployment sets itself."""
        timeouts = deployment.timeouts
        if timeouts is None:
            return self.gateway.timeouts
        return self.gateway.timeouts.model_copy(
            update={name: getattr(timeouts, name) for name in timeouts.model_fields_set}
        )

    def probed(self, probe: Probe) -> tuple[str, ...]:
        """Return the names of the deployments of a probe."""
        return (
            tuple(deployment.name for deployment in self.deployments) if ALL in probe.deployments else probe.deployments
        )

    def mirrored(self, route: Route) -> tuple[str, ...]:
        """Return the deployments to which a route's prompts may be mirrored; a peer may be named by its route."""
        routes = {entry.model: entry for entry in self.routes}
        names: dict[str, None] = {}
        declared = {deployment.name for deployment in self.deployments}
        for peer in route.peers:
            expanded = [peer] if peer in declared else [deployment.name for deployment in routes[peer].deployments]
            names.update(dict.fromkeys(expanded))
        return tuple(names)

    def database_url(self, environ: Mapping[str, str]) -> str | None:
        """Return the store's URL from the file or BIASMETER_DATABASE_URL; None means the embedded store."""
        if self.store.url is not None:
            return self.store.url.get_secret_value()
        url = environ.get(DATABASE_VARIABLE)
        if not url:
            return None
        try:
            return _normalise_database_url(url)
        except ValueError as error:
            raise ConfigError(f"{DATABASE_VARIABLE}: {error}") from None
