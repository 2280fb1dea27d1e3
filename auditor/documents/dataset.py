"""Write a folder that `datasets` of Hugging Face loads: a Parquet file, a README with a card, and a Croissant file.

Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec.html) describes the single values of a row;
columns of lists are in the Parquet file and in the card only.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from auditor.documents.output import write_files
from auditor.errors import InputError

#: Where the rows are, below the folder.
DATA: Final = Path("data")
#: Croissant's types, by Arrow's; other types are lists.
_TYPES: Final = {"string": "sc:Text", "int64": "sc:Integer", "float64": "sc:Float", "bool": "sc:Boolean"}
#: What the names in a Croissant file stand for, as the specification has it.
_CONTEXT: Final[Mapping[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet"),
            *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
            *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField"),
            "transform",
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetCard:
    """What the README and the Croissant file say about the rows."""

    name: str
    description: str
    text: str  #: Markdown below the description
    license: str  #: the identifier of Hugging Face, such as ``cc-by-4.0``, or ``other``
    license_text: str  #: an address, or a sentence
    tags: Sequence[str] = field(default_factory=tuple)


def data_file(folder: Path, name: str) -> Path:
    """Return the path of the rows of a data set, whose folder is made.

    Raises
    ------
    InputError
        The folder cannot be made.
    ModuleNotFoundError
        pyarrow, which writes the rows, is not installed; then no folder is made.
    """
    import pyarrow as pa  # noqa: F401, PLC0415 -- part of the extra frames

    try:
        (folder / DATA).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error
    return folder / DATA / f"{name}.parquet"


def write_card(folder: Path, card: DatasetCard, columns: Sequence[str], types: Mapping[str, str], rows: int) -> None:
    """Write README.md and croissant.json beside the rows, which `data_file` names.

    Parameters
    ----------
    columns, types
        Columns of the Parquet file, and their Arrow types where these are not text.
    rows
        Number of rows.
    """
    path = data_file(folder, card.name)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    croissant = _croissant(card, digest, {name: types.get(name, "string") for name in columns})
    write_files(
        folder,
        {
            "README.md": _readme(card, columns, rows).encode(),
            "croissant.json": json.dumps(croissant, indent=2, ensure_ascii=False).encode() + b"\n",
        },
    )


def _readme(card: DatasetCard, columns: Sequence[str], rows: int) -> str:
    header = {
        "pretty_name": card.name,
        "language": ["en"],
        "license": card.license,
        "tags": list(card.tags),
        "configs": [
            {"config_name": "default", "data_files": [{"split": "test", "path": f"{DATA}/{card.name}.parquet"}]}
        ],
    }
    listed = ", ".join(f"`{name}`" for name in columns)
    return (
        f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n# {card.name}\n\n{card.description}\n\n{card.text}\n\n"
        f"{rows:,} rows with the columns {listed}.\n\nLicence: {card.license_text}\n\n"
        "```python\nfrom datasets import load_dataset\n\n"
        'rows = load_dataset("path/of/this/folder", split="test")\n```\n'
    )


def _croissant(card: DatasetCard, digest: str, types: Mapping[str, str]) -> dict[str, Any]:
    file = f"{card.name}.parquet"
    return {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "name": card.name,
        "description": card.description,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": card.license_text,
        "version": "1.0.0",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": f"{DATA}/{file}",
                "encodingFormat": "application/x-parquet",
                "sha256": digest,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"rows/{name}",
                        "name": name,
                        "dataType": _TYPES[kind],
                        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
                    }
                    for name, kind in types.items()
                    if kind in _TYPES
                ],
            }
        ],
    }
