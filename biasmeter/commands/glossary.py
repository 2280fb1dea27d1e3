"""``biasmeter glossary``: print what the product's terms mean."""

from typing import Annotated

import typer

from auditor.domain.glossary import SECTIONS, find_terms
from auditor.errors import UsageError

app = typer.Typer()


@app.command()
def glossary(
    term: Annotated[str | None, typer.Argument(help="A term, or a part of one; all terms if absent.")] = None,
) -> None:
    """Print what a term of this product means.

    Example: biasmeter glossary dni

    Documentation: docs/glossary.md
    """
    if term is None:
        for title, terms in SECTIONS.items():
            typer.echo(f"\n{title}\n")
            for name, meaning in terms.items():
                typer.echo(f"  {name}: {meaning}")
        return
    matches = find_terms(term)
    if not matches:
        raise UsageError(f"the glossary has no term {term!r}; `biasmeter glossary` lists all terms")
    for name, meaning in matches:
        typer.echo(f"{name}: {meaning}")
