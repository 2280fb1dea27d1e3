"""``tiltmeter references``: what deployments are held against, and a new one that somebody accepts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.answers import ByOption, NoteOption, ReleaseOption, SinceOption, in_store, person, say
from auditor.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from auditor.config import Config


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    references = typer.Typer(no_args_is_help=True, help="What the watch holds deployments against.")
    references.command("list")(_list)
    references.command("accept")(_accept)
    app.add_typer(references, name="references")


def _list(
    config: ConfigOption,
    deployment: Annotated[str | None, typer.Option(help="Only of this deployment.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the references that there have been, each deployment's newest first."""
    from auditor.jobs.acceptance import shown_references

    shown = in_store(config, lambda loaded, connection: shown_references(connection, loaded, deployment))
    lines = [_line(one) for one in shown] or ["nothing is watched yet"]
    say({"references": shown}, lines, as_json=as_json)


def _accept(
    config: ConfigOption,
    deployment: Annotated[str, typer.Option(help="Whose reference it is.")],
    note: NoteOption = None,
    by: ByOption = None,
    since: SinceOption = None,
    release: ReleaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept what a deployment is like since a day as its reference, whatever is found of it: that is answered."""
    from auditor.jobs.acceptance import Accepted, accept_unasked, reference_json

    async def work(loaded: "Config", connection: "AsyncConnection") -> dict[str, Any]:
        accepted = Accepted(since=since.date() if since is not None else None, release=release)
        reference = await accept_unasked(connection, loaded, deployment, accepted, person(by, note))
        return reference_json(reference, in_force=True)

    shown = in_store(config, work)
    say(shown, [_line(shown)], as_json=as_json)


def _line(one: Mapping[str, Any]) -> str:
    days = f"{one['since']} to {one['until']}" if "until" in one else f"since {one['since']}, gathering its days"
    parts = [one["id"], one["deployment"], days]
    parts += [f"release {one['release']}"] if "release" in one else []
    parts += [f"accepted {one['accepted_at'][:10]} by {one['by']}" if "by" in one else "the first"]
    parts += [] if one["in_force"] else ["no longer in force"]
    return "  ".join(parts) + (f": {one['note']}" if "note" in one else "")
