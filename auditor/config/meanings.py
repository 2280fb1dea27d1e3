"""Read what each key of the configuration means, for the JSON Schema and the documentation.

The string after a field says it. Python drops such strings, so they are read from the source, and only when a schema or
a page is made: pydantic's ``use_attribute_docstrings`` would read the source at the start of each process.
"""

import ast
import inspect
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel


def meanings(section: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each key of a section that has one, by the key's name in the file, as Markdown."""
    (declared,) = ast.parse(dedent(inspect.getsource(section))).body
    assert isinstance(declared, ast.ClassDef)
    found = {}
    for field, text in pairwise(declared.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(written))):
                found[section.model_fields[name].alias or name] = markdown(written)
    return found


def markdown(docstring: str) -> str:
    """Return a docstring of one paragraph as Markdown, in one line."""
    return " ".join(docstring.split()).replace("``", "`")
