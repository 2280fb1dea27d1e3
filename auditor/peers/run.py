"""Relative Bias of one table: every target against its peers, as the document of ``peers.json``."""

from typing import Final

from auditor.analysis.document import Json
from auditor.errors import UsageError
from auditor.peers.hosts import compare_hosts
from auditor.peers.instruments import Instruments
from auditor.peers.options import Options
from auditor.peers.score_table import ScoreTable
from auditor.peers.target import Target

SCHEMA: Final = "tiltmeter.peers/1"


def analyse(table: ScoreTable, options: Options, *, skipped: int = 0) -> dict[str, Json]:
    """Compare every target with its peers.

    Parameters
    ----------
    table
        Scores and vectors of everybody.
    options
        Who is compared, and how.
    skipped
        Bad rows that were left out of the table.

    Returns
    -------
    dict
        The document of ``peers.json``; the same for the same rows and options, whatever the rows' order was.

    Raises
    ------
    UsageError
        For a target, a peer or an instrument that is not in the table.
    """
    instruments = Instruments(table)
    _check_known("--target", options.targets, table.deployments)
    _check_known("--peers", options.peers or (), table.deployments)
    for names in options.hosts.values():
        _check_known("--hosts", names, table.deployments)
    _check_known("--margin", tuple(options.margins), instruments.names)
    return {
        "schema": SCHEMA,
        "k": options.k,
        "alpha": options.alpha,
        "blocked": options.blocked,
        "margin": options.margin,
        "margins": dict(options.margins),
        "n_rows": int((table.answered | table.failed).sum()),
        "n_skipped": skipped,
        "n_questions": len(table.questions),
        "targets": [Target(table, instruments, options, name).entry() for name in options.targets],
        "hosts": compare_hosts(table, instruments, options),
    }


def _check_known(option: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{option}: the file has no {name!r}; it has: {', '.join(known)}")
