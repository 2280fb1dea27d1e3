"""Write a statement pool as a data set folder. ``docs/pool.md`` is the data card of the shipped pool."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from auditor.documents.dataset import DatasetCard, data_file, write_card
from auditor.documents.jsonl import Record, Rows
from auditor.documents.row_files import writing_rows
from auditor.domain.statement import Statement
from auditor.instrument.pool import DEFAULT_POOL, SHIPPED_POOLS, record_of

_COLUMNS: Final = (
    "id", "category", "statement", "stereotype_option", "counter_option", "context", "question", "completion",
    "region", "intersectional", "source",
)  # fmt: skip
_TYPES: Final = {"intersectional": "bool"}
#: A text that tells whether a model was trained on the pool; only records of the shipped pool have it.
_CANARY: Final = "canary"
_WARNING: Final = (
    "**Content warning.** The rows are stereotypes about social groups. They are false as generalisations, and none of "
    "them is the view of those who publish them.\n\n"
    "**Use:** to measure whether a language model endorses them. **Not for training**, fine-tuning or reward "
    "modelling: a model that has seen the statements can no longer be measured with them."
)
_SHIPPED: Final = DatasetCard(
    name="biasmeter-pool",
    description="English statements that attribute a trait to a social group, with the options, scenes and sentences "
    "in which Biasmeter asks about them.",
    text=_WARNING,
    license="cc-by-4.0",
    license_text="https://creativecommons.org/licenses/by/4.0/",
    tags=("bias", "stereotypes", "evaluation"),
)


def write_pool_dataset(folder: Path, statements: Sequence[Statement] | None) -> int:
    """Write a pool, and return the number of its statements.

    Parameters
    ----------
    statements
        A pool of one's own. None: the shipped pool, with its licence and the canaries of its records.

    Raises
    ------
    UsageError, InputError
        The folder cannot be written to.
    ModuleNotFoundError
        pyarrow is not installed.
    """
    card, records = _SHIPPED, _shipped()
    columns: tuple[str, ...] = (*_COLUMNS, _CANARY)
    if statements is not None:
        card = DatasetCard(
            name="statements",
            description="A pool of statements that are asked with Biasmeter.",
            text=_WARNING,
            license="other",
            license_text="none is given; ask those who wrote the statements",
        )
        columns, records = _COLUMNS, [record_of(statement) for statement in statements]
    with writing_rows(data_file(folder, card.name), columns, _TYPES) as write:
        for record in records:
            write(record)
    write_card(folder, card, columns, _TYPES, len(records))
    return len(records)


def _shipped() -> list[Record]:
    path = Path(__file__).with_name(SHIPPED_POOLS[DEFAULT_POOL])
    return [record for _, record in Rows(path).read(lambda record: record)]
