"""References that people accept: what a deployment is like from a day on is what it is held against.

In answer to a finding or of themselves (a release was announced, say): either way all that is found of the deployment
is answered with it, and nobody is told anything of it until the new reference has its days.
"""

from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config
from auditor.errors import UsageError
from auditor.jobs.findings import Person, answer_with, need_unanswered, reference_id
from auditor.live.coders import open_coders
from auditor.store.findings import Finding
from auditor.store.references import StoredReference, add_reference, read_references, references_in_force


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """What is accepted."""

    since: date | None = None  #: the first day; without it that of the finding, else today
    release: str | None = None  #: a name for it


async def accept_reference(
    connection: AsyncConnection, config: Config, finding: Finding, accepted: Accepted, person: Person
) -> StoredReference:
    """Answer a finding with a new reference.

    Parameters
    ----------
    connection, config
        The finding was read with ``changing`` on this connection.
    finding, accepted, person
        What is answered, with what, and by whom.

    Raises
    ------
    UsageError
        It has been answered already, or the day has not come yet.
    """
    need_unanswered(finding)
    since = accepted.since or finding.day
    return await _begin(connection, config, (finding.coder, finding.deployment), since, accepted.release, person)


async def accept_unasked(
    connection: AsyncConnection, config: Config, deployment: str, accepted: Accepted, person: Person
) -> StoredReference:
    """Begin a new reference of a deployment, whatever is found of it.

    Raises
    ------
    UsageError
        The deployment is not watched, or the day has not come yet.
    """
    coder = await watching_coder(config)
    if deployment not in await references_in_force(connection, coder, person.now, content=False):
        raise UsageError(f"{deployment} is not watched yet: its first reference begins with the first day it is probed")
    since = accepted.since or person.now.date()
    return await _begin(connection, config, (coder, deployment), since, accepted.release, person)


async def watching_coder(config: Config) -> str:
    """Name the coder whose readings are watched: the configuration's one of planned calls."""
    async with open_coders(config, asking=False) as coders:
        return next(coder.id for coder in coders if coder.routes is None)


async def _begin(
    connection: AsyncConnection,
    config: Config,
    watched: tuple[str, str],
    since: date,
    release: str | None,
    person: Person,
) -> StoredReference:
    if since > person.now.date():
        raise UsageError(f"a reference cannot begin on {since.isoformat()}: that day has not come yet")
    coder, deployment = watched
    reference = StoredReference(
        id=reference_id(coder, deployment, since, person.now.isoformat()), coder=coder, deployment=deployment,
        since=since, release=release, accepted_at=person.now, accepted_by=person.by, note=person.note,
    )  # fmt: skip
    await add_reference(connection, reference)
    await answer_with(connection, config, reference, person)
    return reference


async def shown_references(
    connection: AsyncConnection, config: Config, deployment: str | None = None
) -> list[dict[str, Any]]:
    """Give the references of the configuration's coder as the API shows them, each deployment's newest first."""
    found = await read_references(connection, await watching_coder(config), deployment)
    return [
        reference_json(one, in_force=place == 0 or found[place - 1].deployment != one.deployment)
        for place, one in enumerate(found)
    ]


def reference_json(reference: StoredReference, *, in_force: bool) -> dict[str, Any]:
    """Write a reference as the API shows it; what is unknown is absent, and ``until`` while its days are gathered."""
    given = {"by": reference.accepted_by, "note": reference.note, "release": reference.release}
    known = {name: value for name, value in given.items() if value is not None}
    if reference.until is not None:
        known["until"] = reference.until.isoformat()
    return {
        "id": reference.id,
        "deployment": reference.deployment,
        "since": reference.since.isoformat(),
        "accepted_at": reference.accepted_at.isoformat(),
        "in_force": in_force,
        "coder": reference.coder,
        **known,
    }
