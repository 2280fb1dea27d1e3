"""Turn answers into vectors, with a local model (sentence-transformers) or an endpoint (``/v1/embeddings``).

``load_embedder`` makes the embedder of a configuration. It imports torch only for a local model.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.errors import AuditError, UsageError
from auditor.judges.rubric import digest

if TYPE_CHECKING:
    import httpx2

    from auditor.access import GatewayAccess
    from auditor.config import Config
    from auditor.config.audits import Embedding

Matrix = NDArray[np.float32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """How vectors are made; those of two encodings are not compared.

    Parameters
    ----------
    model
        The name at its hub or server, or the folder's name.
    revision
        Commit of a hub's model, or hash of a folder's files; None where a server does not report it.
    instruction
        The text before each text; empty for none.
    pooling
        ``masked``: the instruction is read and left out of the mean (INSTRUCTOR's own way); ``pairs``: instruction and
        text are a pair of texts, pooled together (the published vectors' way); ``plain``: there is no instruction;
        ``server``: the endpoint's own business.
    max_tokens
        Longer texts, including the instruction, are truncated; None if no limit is known.
    """

    model: str
    revision: str | None
    instruction: str
    pooling: str
    max_tokens: int | None

    @property
    def coder(self) -> str:
        """``model@revision:hash``: stored with every vector; the hash changes with anything that could change one."""
        limit = "" if self.max_tokens is None else str(self.max_tokens)
        return f"{self.model}@{self.revision or 'unknown'}:{digest(self.instruction, self.pooling, limit)}"

    def describe(self) -> dict[str, str | int | None]:
        """Return the settings to store with vectors."""
        return {**asdict(self), "coder": self.coder}


@dataclass(frozen=True, kw_only=True, slots=True)
class Embedded:
    """Vectors of some texts, in their order: shape [n, d], and which texts were cut to fit, shape [n].

    A server may truncate a text silently; only truncation before sending is known.
    """

    vectors: Matrix
    truncated: Flags


class Embedder(Protocol):
    """A model that makes vectors of texts."""

    @property
    def encoding(self) -> Encoding:
        """The settings that determine its vectors."""

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Make vectors of one or more texts; surrounding white space is removed.

        Raises
        ------
        JudgeUnavailable
            When an endpoint does not answer, or not usably.
        AuditError
            When what it gave is no vector for each text.
        """

    async def aclose(self) -> None:
        """Close what it opened."""


def check_vectors(vectors: Matrix, count: int, source: str) -> Matrix:
    """Return the vectors if there are ``count`` of them and all are finite.

    Raises
    ------
    AuditError
        Otherwise, in the name of ``source`` made them.
    """
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
        raise AuditError(f"{source}: gave no vector for each of {count} texts")
    if not np.isfinite(vectors).all():
        raise AuditError(f"{source}: gave a vector that is not finite")
    return vectors


def load_embedder(
    settings: "Embedding",
    config: "Config | None" = None,
    *,
    instruction: str = "",
    client: "httpx2.AsyncClient | None" = None,
    through: "GatewayAccess | None" = None,
) -> Embedder:
    """Make the embedder that a domain's settings describe.

    Parameters
    ----------
    settings
        A model to be run here, or a deployment that serves one.
    config
        Configuration with the deployments.
    instruction
        Instruction of the domain: an INSTRUCTOR model (one that is called so) is given it where the settings name none.
    client
        The connection pool for an endpoint; opened here when absent, closed with the embedder.
    through
        The gateway, where an endpoint is to be reached through its door.

    Raises
    ------
    UsageError
        For a model that cannot be loaded, or cannot do what the settings ask of it.
    ConfigError
        For a deployment that is not there.
    """
    if settings.deployment is None:
        from auditor.peers.embedding.local import load_local  # noqa: PLC0415 -- torch comes with it

        return load_local(settings, instruction)
    if config is None:
        raise UsageError(f"deployment {settings.deployment!r} embeds, but there is no configuration")
    from auditor.peers.embedding.endpoint import make_endpoint_embedder  # noqa: PLC0415 -- it loads httpx2

    return make_endpoint_embedder(settings, config, client, through)
