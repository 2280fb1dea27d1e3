"""``biasmeter verify``: check that stored facts are unchanged, and sign the head of their chain."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.terminal.options import ConfigOption

if TYPE_CHECKING:
    from datetime import datetime

    from auditor.documents.chain_head import ChainHeadDocument
    from auditor.store.chain import ChainFault, ChainPoint, ChainState

app = typer.Typer()

SIGNING_KEY: Final = "BIASMETER_SIGNING_KEY"


@app.command("verify")
def _verify(
    config: ConfigOption,
    sign: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Write the head, signed with the private key in {SIGNING_KEY}.")
    ] = None,
    head: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check that the chain still contains this signed head.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="With --head: the public key that must have signed it.")
    ] = None,
    new_key: Annotated[bool, typer.Option("--new-key", help="Make a private key, print it, and end.")] = False,
) -> None:
    """Check the chain of stored facts, and name the first row that is altered, missing or inserted.

    Ends with status 1 if there is one. Works on a restored backup too. A head that was signed and kept elsewhere also
    shows that the newest rows were removed or the whole chain was rewritten.
    """
    if sum((sign is not None, head is not None, new_key)) > 1:
        raise UsageError("--sign, --head and --new-key exclude one another")
    if public_key is not None and head is None:
        raise UsageError("--public-key needs --head")
    if new_key:
        _print_new_key()
    elif sign is not None:
        _sign(config, sign)
    elif head is not None:
        _compare(config, head, public_key)
    else:
        _print(_checked(config))


def _checked(config: Path, length: int | None = None) -> "ChainState":
    import os
    from datetime import UTC, datetime, timedelta

    from auditor.config import load_without_upstream_keys
    from auditor.domain.ids import floor_id
    from auditor.store.chain import verify_chain
    from biasmeter.store_work import in_store

    loaded = load_without_upstream_keys(config, os.environ)
    kept_from = datetime.now(UTC) - timedelta(seconds=loaded.retention.facts)
    state = in_store(loaded, lambda engine: verify_chain(engine, floor_id(kept_from), length))
    if state.fault is not None:
        raise AuditError(_named(state.fault, kept_from))
    return state


def _print(state: "ChainState") -> None:
    from auditor.domain.ids import id_time

    older = f" (older than {id_time(state.expired_before):%Y-%m-%d})" if state.expired_before.int else ""
    typer.echo(f"length of the chain: {state.length} batches, {state.batches} of them kept")
    typer.echo(f"{state.rows:,} exchanges are unchanged since they were stored")
    head = state.head
    typer.echo(f"{head.erased:,} were erased and recorded as erased, {head.expired:,} more have expired{older}")
    typer.echo(f"head: {head.digest.hex()}")


def _named(fault: "ChainFault", kept_from: "datetime") -> str:
    from auditor.store.chain import ChainFaultKind

    match fault.kind:
        case ChainFaultKind.BROKEN:
            return f"the chain is broken: batch {fault.position} does not follow from the batch before it"
        case ChainFaultKind.INSERTED:
            return f"exchange {fault.exchange_id} was inserted: no batch of the chain lists it"
        case ChainFaultKind.EARLY:
            return (
                f"exchanges before {fault.exchange_id} have expired, by the store's record, and retention.facts keeps "
                f"those from {kept_from:%Y-%m-%d} on"
            )
        case ChainFaultKind.FORGOTTEN:
            return f"the batches up to {fault.position} are gone, and exchange {fault.exchange_id} has not expired"
        case _:
            return f"exchange {fault.exchange_id} of batch {fault.position} is {fault.kind}"


def _print_new_key() -> None:
    from auditor.documents.chain_head import new_key

    private, public = new_key()
    typer.echo(f"{SIGNING_KEY}={private}")
    typer.echo(f"# public key: {public}")


def _sign(config: Path, path: Path) -> None:
    import os
    from dataclasses import asdict
    from datetime import UTC, datetime

    from auditor.documents.chain_head import read_key, sign_head
    from auditor.documents.codec import canonical_bytes
    from auditor.documents.output import write_files

    text = os.environ.get(SIGNING_KEY)
    if text is None:
        raise UsageError(f"--sign needs a private key in {SIGNING_KEY}; make one with: biasmeter verify --new-key")
    private_key = read_key(text, SIGNING_KEY)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder")
    state = _checked(config)
    signed_at = datetime.now(UTC).isoformat(timespec="seconds")
    head = sign_head(private_key, length=state.length, signed_at=signed_at, **asdict(state.head))
    write_files(path.parent, {path.name: canonical_bytes(head)})
    _print(state)
    typer.echo(f"{path}: signed with the key {head.public_key}")


def _compare(config: Path, path: Path, public_key: str | None) -> None:
    from auditor.documents.chain_head import ChainHeadDocument, is_signed, read_key
    from auditor.documents.codec import decode
    from auditor.documents.input_files import read_document

    wanted = read_key(public_key, "--public-key").hex() if public_key is not None else None
    head = decode(read_document(path), ChainHeadDocument, str(path))
    if wanted not in {None, head.public_key}:
        raise AuditError(f"{path}: the key {head.public_key} signed it, not the one of --public-key")
    if not is_signed(head):
        raise AuditError(f"{path}: the signature is not of this content; the file was altered")
    state = _checked(config, head.length)
    point = _check_contains(state, head)
    key = f"the key {head.public_key}" + ("" if wanted else ", which was not compared: see --public-key")
    typer.echo(
        f"the chain of {state.length} batches contains the head of {head.length}, signed {head.signed_at} by {key}"
    )
    typer.echo(
        f"of its exchanges {point.erased:,} are erased ({head.erased:,} when it was signed), "
        f"{point.expired:,} have expired ({head.expired:,} when it was signed)"
    )


def _check_contains(state: "ChainState", head: "ChainHeadDocument") -> "ChainPoint":
    """Return the chain up to the signed head."""
    if head.length > state.length:
        raise AuditError(
            f"the newest batches are gone: the chain has {state.length}, and had {head.length} on {head.signed_at}"
        )
    if state.wanted is None:
        if head.newest >= str(state.expired_before):
            raise AuditError(f"the batches up to {state.begin} are gone, and exchange {head.newest} has not expired")
        raise AuditError(
            f"the head of batch {head.length} cannot be compared: the chain begins behind batch {state.begin}, because "
            "retention removed older ones"
        )
    if (state.wanted.digest.hex(), str(state.wanted.newest)) != (head.digest, head.newest):
        raise AuditError(
            f"the chain was rebuilt: batch {head.length} is not the one that was signed on {head.signed_at}"
        )
    return state.wanted
