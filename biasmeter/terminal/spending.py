"""Write amounts of money, and ask before they are spent."""

import sys
from collections.abc import Sequence

import typer

from auditor.errors import UsageError


def dollars(usd: float) -> str:
    """Write an amount to the cent; a smaller amount above 0 is never written as 0."""
    return f"{usd:,.2f} USD" if usd >= 0.01 or usd == 0 else "less than 0.01 USD"


def ask_leave(usd: float, unpriced: Sequence[str]) -> None:
    """Ask before so much is spent; of deployments without a price, say so.

    Raises
    ------
    UsageError
        There is no terminal to ask on.
    """
    if unpriced:
        typer.echo(f"the cost is unknown: no price is declared for {', '.join(unpriced)}", err=True)
    if usd > 0:
        if not sys.stdin.isatty():
            raise UsageError(f"the estimated cost is {dollars(usd)}; add --yes to send")
        typer.confirm(f"The estimated cost is {dollars(usd)}. Send?", abort=True, err=True)
