"""YAML text → PyYAML's node graph, or one problem with its place, in words. ``yaml_source`` reads the graph."""

import re
from typing import Final

import yaml
from typing_extensions import override  # in typing from 3.12 on

from auditor.config.problems import Problem

#: No configuration written by people nests deeper; Python's own limit is never met.
DEEPEST: Final = 64

_TOO_DEEP: Final = f"nested more than {DEEPEST} levels deep"

# "{url: ${NAME}}" is not YAML (a brace ends unquoted text inside braces), but it is what people write. Before the
# text is parsed, the braces of a reference become two private characters: one for one, so that positions hold.
_OPEN, _CLOSE = "\ue000", "\ue001"
_REFERENCE: Final = re.compile(r"\$\{([^{}\n]*)\}")
_VEILED: Final = re.compile(rf"\${_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")


class _Loader(yaml.SafeLoader):
    """PyYAML's composer with a limit on depth, so that it never meets Python's own."""

    depth = 0

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST and parent is not None:
            raise yaml.MarkedYAMLError(problem=_TOO_DEEP, problem_mark=parent.start_mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def compose(text: str) -> yaml.Node | Problem | None:
    """Compose the one document of a text; None where it is empty."""
    veiled = _REFERENCE.sub(rf"${_OPEN}\1{_CLOSE}", text)
    try:
        return _compose(veiled)
    except yaml.YAMLError as error:
        return _explain(error, veiled)
    except (ValueError, OverflowError):
        return Problem(line=1, message="not valid YAML: an escape or a directive has no such number")


def unveil(text: str) -> str:
    """Give text from the graph as it was written."""
    return _VEILED.sub(r"${\1}", text)


def _compose(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _explain(error: yaml.YAMLError, text: str) -> Problem:
    """Turn PyYAML's error into words and a place."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        column = error.position - (text.rfind("\n", 0, error.position) + 1) + 1
        return Problem(line=line, column=column, message=f"character U+{error.character:04X} cannot stand in YAML")
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark, message = _word_syntax(error, error.problem_mark, text)
        return Problem(line=mark.line + 1, column=mark.column + 1, message=f"not valid YAML: {message}")
    return Problem(line=1, message=f"not valid YAML: {_clean(str(error))}")


def _word_syntax(error: yaml.MarkedYAMLError, mark: yaml.Mark, text: str) -> tuple[yaml.Mark, str]:
    """Find the words for PyYAML's commoner complaints, and the place that a person would look at."""
    problem, context = error.problem or "", error.context or ""
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if r"'\t'" in problem or "\t" in line[: len(line) - len(line.lstrip())]:
        return mark, "a tab stands where only spaces may"
    if "stream end" in problem or "end of stream" in problem:
        opened = error.context_mark
        if opened is not None and ("quoted" in context or "flow" in context):
            return opened, "the quote or bracket that opens here is never closed"
    if "scanning an alias" in context or "undefined alias" in problem or "cannot start any token" in problem:
        return mark, f"{_clean(problem)} (text that begins with a sign such as * & @ ! % ` needs quotes)"
    if "mapping values are not allowed" in problem:
        return mark, "a colon cannot stand here (put text that holds one in quotes, or check the indentation)"
    if "but found another document" in problem:
        return mark, "a second document begins here; a configuration is one"
    return mark, _clean(problem)


def _clean(text: str) -> str:
    """Give a library's message on one line, references as they were written."""
    return unveil(" ".join(text.split()))
