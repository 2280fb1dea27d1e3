"""``biasmeter difference``: two deployments of a coded file on the same statements and conditions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biasmeter.terminal.options import JsonOption
from biasmeter.terminal.progress import progress
from biasmeter.terminal.tables import table_lines

if TYPE_CHECKING:
    from auditor.documents.differences import DeploymentDifferenceEntry, MissingDifference

app = typer.Typer()


@app.command("difference")
def difference(
    coded: Annotated[Path, typer.Argument(metavar="CODED.jsonl", help="Coded rows, .gz or not.", show_default=False)],
    first: Annotated[str, typer.Argument(metavar="A", help="A deployment.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="B", help="Another deployment.", show_default=False)],
    by: Annotated[
        str, typer.Option(metavar="FIELD", help="Field of the rows that has the values A and B.")
    ] = "deployment",
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One measure. Default: the three full rates, IR and DNI."),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip bad lines.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two deployments on the same statements and conditions: is B worse than A?

    Pooled rates also differ where one of them was asked the hard conditions more often; the paired difference does not.
    """
    from auditor.documents.codec import canonical_bytes, json_object
    from auditor.estimation.analysis import Options, read_tallies
    from auditor.estimation.differences import COMPARED
    from auditor.estimation.differences import difference as compare_sides
    from auditor.estimation.judges import panels

    with progress(coded, "reading") as on_bytes:
        tallies = read_tallies(coded, Options(by=(by,), skip_bad=skip_bad), on_bytes)
    for complaint in tallies.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    judges = panels(tallies.votes)
    entries = [
        compare_sides(tallies, judges, first, second, field=by, metric=name)
        for name in ([metric] if metric else COMPARED)
    ]
    if as_json:
        typer.echo(canonical_bytes([json_object(entry) for entry in entries]).decode(), nl=False)
        return
    typer.echo(f"{second} less {first}, on the same statements and conditions:")
    heads = ("measure", "difference [95 %]", "p", "statements", "answers", "left out", "pooled", "verdict")
    for line in table_lines([heads, *map(_line, entries)], right=(2, 3, 4, 5)):
        typer.echo(line)


def _line(entry: "DeploymentDifferenceEntry | MissingDifference") -> tuple[str, ...]:
    from auditor.documents.base import Missing
    from auditor.documents.differences import MissingDifference
    from auditor.metrics.rates import METRICS
    from auditor.report.tables import SMALL_P
    from auditor.report.wording import DASH, points, points_text

    label = METRICS[entry.metric].label
    name = f"{label}, all" if METRICS[entry.metric].base == "full" else label
    if isinstance(entry, MissingDifference):
        return (name, f"{DASH} {entry.missing}", *[""] * 6)
    verdict = entry.verdict.missing if isinstance(entry.verdict, Missing) else entry.verdict
    return (
        name,
        points_text(entry.value, entry.low, entry.high),
        f"< {SMALL_P}" if entry.p < SMALL_P else f"{entry.p:.3f}",
        f"{entry.n_statements:,}",
        f"{entry.n:,}",
        f"{entry.left_out:,}",
        points(entry.pooled),
        verdict,
    )
