"""``biasmeter verify``: whether the stored facts are those that were shipped."""

from typing import TYPE_CHECKING

import typer

from biasmeter.options import ConfigOption

if TYPE_CHECKING:
    from auditor.store.chain import ChainFault

app = typer.Typer()


@app.command("verify")
def _verify(config: ConfigOption) -> None:
    """Check the chain of stored facts, and name the first row that is altered, missing or inserted.

    Ends with status 1 if there is one. Works on a restored backup too.
    """
    import os

    from auditor.cli.store import in_store
    from auditor.config import load
    from auditor.errors import AuditError
    from auditor.store.chain import verify_chain

    state = in_store(load(config, os.environ), verify_chain)
    if state.fault is not None:
        raise AuditError(_named(state.fault))
    typer.echo(f"length of the chain: {state.length} batches, {state.batches} of them kept")
    typer.echo(f"{state.rows:,} exchanges are as they were shipped")
    typer.echo(f"{state.erased:,} were erased by record, {state.expired:,} more have expired")
    typer.echo(f"head: {state.head.hex()}")


def _named(fault: "ChainFault") -> str:
    if fault.what == "broken":
        return f"the chain is broken: batch {fault.position} does not follow from the batch before it"
    if fault.position is None:
        return f"exchange {fault.exchange_id} was inserted: no batch of the chain lists it"
    return f"exchange {fault.exchange_id} of batch {fault.position} is {fault.what}"
