"""Define the judge protocol: a judge reads one free text and returns one verdict on its stance. No I/O.

``auditor.coding.panel`` combines several judges; ``loading`` makes them from their names.
"""

from collections.abc import Mapping
from typing import Protocol

from auditor.domain.coding import Verdict
from auditor.judges.rubric import Rubric


class Judge(Protocol):
    """A judge of free text. It answers with a label of its rubric, or refuses."""

    @property
    def name(self) -> str:
        """Return the name in the configuration, unique within a panel."""

    @property
    def version(self) -> str:
        """Return the version, which changes whenever the same text could get another label."""

    @property
    def rubric(self) -> Rubric:
        """Return the rubric that the judge answers."""

    @property
    def local(self) -> bool:
        """Return whether it needs no network."""

    @property
    def waits(self) -> bool:
        """Return whether reading waits for a network or a batch, so that several texts are better read at once."""

    @property
    def coder(self) -> str:
        """Return ``name@version:hash``, which is stored with every row it labelled."""

    async def read(self, statement: str | None, text: str) -> Verdict:
        """Read one text.

        Raises
        ------
        JudgeUnavailable
            When the judge could not be asked; the row then stays uncoded.
        """

    def describe(self) -> Mapping[str, str]:
        """Return the description of the judge to store with the rows it labelled."""

    async def aclose(self) -> None:
        """Close its connections."""
