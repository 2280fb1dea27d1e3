"""Read the call paths of docs/architecture.md, and look in the source whether each step calls the next."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.architecture.structure import Structure

_STEP = re.compile(r"(?P<indent> *)(?P<module>[\w.]+):(?P<function>[\w.]+)")


@dataclass(frozen=True)
class Step:
    """A function on a path, and the step that calls it, if one does."""

    module: str
    function: str
    caller: "Step | None"

    @property
    def name(self) -> str:
        """Return the name that a caller uses: the function's, or the class's where that is called."""
        return self.function.rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


def read_paths(page: Path) -> dict[str, list[Step]]:
    """Return the steps of each path by its heading.

    An indented step is called by the last step that is less indented.
    """
    title, inside, found = "", False, dict[str, list[str]]()
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            title = line.removeprefix("### ")
        elif line.startswith("```"):
            inside = line == "```text"
        elif inside:
            found.setdefault(title, []).append(line)
    return {title: _steps(lines) for title, lines in found.items()}


def _steps(lines: list[str]) -> list[Step]:
    steps: list[Step] = []
    callers: list[tuple[int, Step]] = []
    for line in lines:
        found = _STEP.match(line)
        assert found is not None, f"not a step: {line}"
        indent = len(found["indent"])
        callers = [(other, step) for other, step in callers if other < indent]
        step = Step(found["module"], found["function"], callers[-1][1] if callers else None)
        steps.append(step)
        callers.append((indent, step))
    return steps


def faults(step: Step, product: Structure) -> Iterator[str]:
    """Yield what is wrong with a step: it does not exist, or its caller does not call it."""
    if step.module not in product.trees or _definition(product.trees[step.module], step.function) is None:
        yield f"{step} does not exist"
    elif step.caller is not None and step.name not in _names_used(step.caller, product):
        yield f"{step.caller} does not call {step}"


def _names_used(step: Step, product: Structure) -> set[str]:
    """Return the names that a function uses, itself or through other functions of its module."""
    tree = product.trees.get(step.module, ast.Module(body=[], type_ignores=[]))
    functions: dict[str, list[ast.AST]] = {}
    for node in product.marked_nodes.get(step.module, []):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.setdefault(node.name, []).append(node)
    definition = _definition(tree, step.function)
    waiting = [] if definition is None else [definition]
    seen: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name is not None and name not in seen:
                seen.add(name)
                waiting += functions.get(name, [])
    return seen


def _definition(tree: ast.Module, function: str) -> ast.AST | None:
    node: ast.AST | None = tree
    for part in function.split("."):
        inside = getattr(node, "body", [])
        node = next((each for each in inside if getattr(each, "name", None) == part), None)
    return node
