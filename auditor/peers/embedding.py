"""Turn answers into vectors, with a local model (sentence-transformers) or an endpoint (``/v1/embeddings``).

``load_embedder`` makes the embedder of a configuration; ``local_embedding`` has that of a local model. An endpoint is
asked with the waits and retries of a judge's endpoint. Some servers reject ``encoding_format``, some a batch with one
long text, some an empty text. The embedder adapts to each error, so that every text gets a vector.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Protocol

import httpx2
import numpy as np
from numpy.typing import NDArray

from auditor.access import GatewayAccess
from auditor.config import Config
from auditor.config.audits import Embedding
from auditor.errors import AuditError, JudgeUnavailable, UsageError
from auditor.judges.endpoint import EndpointClient, JudgeEndpoint, open_client
from auditor.judges.loading import reach_deployment
from auditor.judges.rubric import digest
from auditor.peers.together import run_together

Matrix = NDArray[np.float32]
Flags = NDArray[np.bool_]

#: Texts, and their characters, that go into one request.
_MOST_TEXTS: Final = 64
_MOST_CHARACTERS: Final = 200_000
#: A batch of this many characters is not split further.
_SHORTEST: Final = 64
#: Sent in place of an empty text, because servers reject "".
_BLANK: Final = " "


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
    settings: Embedding,
    config: Config | None = None,
    *,
    instruction: str = "",
    client: httpx2.AsyncClient | None = None,
    through: GatewayAccess | None = None,
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
        For a deployment, or its model, that is not there.
    """
    if settings.deployment is None:
        from auditor.peers.local_embedding import load_local  # noqa: PLC0415 -- it takes its types from here

        return load_local(settings, instruction)
    name = settings.deployment
    if config is None:
        raise UsageError(f"deployment {name!r} embeds, but there is no configuration")
    endpoint = replace(reach_deployment(config, name, through, name=name, role="embedder"), path="embeddings")
    encoding = Encoding(
        model=endpoint.model,
        revision=settings.revision,
        instruction=settings.instruction,
        pooling="server",
        max_tokens=None,
    )
    return EndpointEmbedder(endpoint, encoding, client or open_client(endpoint.concurrency))


class EndpointEmbedder:
    """A model at an endpoint, asked in batches."""

    def __init__(self, endpoint: JudgeEndpoint, encoding: Encoding, client: httpx2.AsyncClient) -> None:
        self.encoding = encoding
        self._server = EndpointClient(endpoint, client)
        self._format: str | None = "base64"

    async def aclose(self) -> None:
        """Close the connection pool."""
        await self._server.aclose()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Make vectors of at least one text, the instruction in front of each.

        Raises
        ------
        JudgeUnavailable
            When the server does not answer, or rejects every form of the request.
        AuditError
            When what it gave is no vector for each text.
        """
        inputs = [(self.encoding.instruction + text.strip()).encode("utf-8", "replace").decode() for text in texts]
        done = await run_together(self._ask([text or _BLANK for text in batch]) for batch in _batches(inputs))
        if len({part.vectors.shape[1] for part in done}) > 1:
            raise AuditError(f"{self._server.endpoint}: gave vectors of several dimensions")
        return _join(done)

    async def _ask(self, texts: list[str]) -> Embedded:
        """Send one batch; split it if the server says that it is too long."""
        endpoint = self._server.endpoint
        body = {"model": endpoint.model, "input": texts, **endpoint.extra}
        tried = self._format
        answer = await self._server.post(body if tried is None else {**body, "encoding_format": tried})
        if answer.status == 200:
            vectors = check_vectors(_read(answer.body, str(endpoint)), len(texts), str(endpoint))
            return Embedded(vectors=vectors, truncated=np.zeros(len(texts), dtype=np.bool_))
        if answer.is_too_long and (len(texts) > 1 or len(texts[0]) > _SHORTEST):
            return await self._ask_for_less(texts)
        if "encoding_format" in answer.complaint and tried is not None:
            self._format = None
            return await self._ask(texts)
        raise JudgeUnavailable(f"{endpoint}: HTTP {answer.status}: {answer.complaint[:200]}")

    async def _ask_for_less(self, texts: list[str]) -> Embedded:
        half = len(texts) // 2
        if half:
            return _join([await self._ask(texts[:half]), await self._ask(texts[half:])])
        shorter = await self._ask([texts[0][: len(texts[0]) // 2]])
        return replace(shorter, truncated=np.ones(1, dtype=np.bool_))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split texts into batches of bounded size; a very long text is a batch of its own."""
    batch: list[str] = []
    held = 0
    for text in texts:
        if batch and (len(batch) == _MOST_TEXTS or held + len(text) > _MOST_CHARACTERS):
            yield batch
            batch, held = [], 0
        batch.append(text)
        held += len(text)
    if batch:
        yield batch


def _join(parts: Sequence[Embedded]) -> Embedded:
    return Embedded(
        vectors=np.concatenate([part.vectors for part in parts]),
        truncated=np.concatenate([part.truncated for part in parts]),
    )


def _read(body: Any, source: str) -> Matrix:
    """Read the vectors of an answer in the order of their ``index``; as numbers, or as base64 of single precision."""
    try:
        placed = {entry["index"]: _numbers(entry["embedding"]) for entry in body["data"]}
        with np.errstate(over="ignore"):  # what does not fit is infinite, and found to be
            return np.array([placed[at] for at in range(len(body["data"]))], dtype=np.float32)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise AuditError(f"{source}: its answer holds no vectors that can be read ({type(error).__name__})") from error


def _numbers(embedding: str | list[float]) -> Any:
    """Return numbers as they are, or decoded (what is not base64 is a ValueError)."""
    if isinstance(embedding, list):
        return embedding
    return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
