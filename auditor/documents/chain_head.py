"""Sign the newest digest of a store's chain of facts with Ed25519, and check such a signature (RFC 8032).

The signature is of the document without the key ``signature``, written by ``canonical_bytes``: the bytes of the file
without the line of the signature.
"""

import base64
import binascii
from typing import Annotated, Literal
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta
from msgspec.structs import asdict, replace

from auditor.documents.base import Count, Document, Id, Sha256, Timestamp
from auditor.documents.codec import canonical_bytes
from auditor.errors import UsageError

_KEY_BYTES = 32

PublicKey = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="An Ed25519 public key, 32 bytes.")]
Signature = Annotated[str, Meta(pattern="^[0-9a-f]{128}$", description="An Ed25519 signature, 64 bytes.")]


class ChainHeadDocument(Document):
    """A signed head of a chain of facts: what the newest digest was at some time. Bytes are in hexadecimal digits."""

    schema: Literal["biasmeter.chain_head/1"]
    length: Annotated[Count, Meta(description="Batches of the chain since the store was made.")]
    digest: Annotated[Sha256, Meta(description="The digest of the newest batch; zeros for an empty chain.")]
    newest: Annotated[Id, Meta(description="The newest exchange; zeros for an empty chain.")]
    erased: Annotated[Count, Meta(description="Exchanges of kept batches that were gone by a record of their erasure.")]
    expired: Annotated[Count, Meta(description="Exchanges of kept batches that retention had removed.")]
    signed_at: Timestamp
    public_key: PublicKey
    signature: Signature


def new_key() -> tuple[str, str]:
    """Make a private key and its public key, as hexadecimal digits."""
    private = Ed25519PrivateKey.generate()
    return private.private_bytes_raw().hex(), private.public_key().public_bytes_raw().hex()


def read_key(text: str, name: str) -> bytes:
    """Read the 32 bytes of a key from base64 or hexadecimal digits.

    Raises
    ------
    UsageError
        It is neither, or of another length; names ``name`` and never the text.
    """
    text = text.strip()
    try:
        key = bytes.fromhex(text) if len(text) == 2 * _KEY_BYTES else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != _KEY_BYTES:
        raise UsageError(f"{name} is not a key: 32 bytes, written in base64 or as hexadecimal digits")
    return key


def sign_head(
    private_key: bytes, *, length: int, digest: bytes, newest: UUID, erased: int, expired: int, signed_at: str
) -> ChainHeadDocument:
    """Sign the head of a chain.

    Parameters
    ----------
    private_key
        Ed25519 private key, 32 bytes.
    length
        Number of batches of the chain.
    digest
        Digest of the newest batch, 32 bytes.
    newest
        The newest exchange.
    erased, expired
        Number of exchanges of the kept batches that were erased, and that retention has removed.
    signed_at
        Time of signing in ISO 8601, with the offset.
    """
    private = Ed25519PrivateKey.from_private_bytes(private_key)
    head = ChainHeadDocument(
        schema="biasmeter.chain_head/1",
        length=length,
        digest=digest.hex(),
        newest=str(newest),
        erased=erased,
        expired=expired,
        signed_at=signed_at,
        public_key=private.public_key().public_bytes_raw().hex(),
        signature="",
    )
    return replace(head, signature=private.sign(_signed_bytes(head)).hex())


def is_signed(head: ChainHeadDocument) -> bool:
    """Return whether the signature is of this head and by the public key in it."""
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(head.public_key))
    try:
        public.verify(bytes.fromhex(head.signature), _signed_bytes(head))
    except InvalidSignature:
        return False
    return True


def _signed_bytes(head: ChainHeadDocument) -> bytes:
    return canonical_bytes({key: value for key, value in asdict(head).items() if key != "signature"})
