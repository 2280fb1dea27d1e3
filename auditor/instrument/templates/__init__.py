"""Templates: the wordings in which a task puts a statement, one file a task beside this module.

Template 00 of a task is the canonical one, which its format renders; the files hold paraphrases. A wording never
changes under its id, for stored answers are read by it: a changed wording gets a new id. ``asking`` fills them in.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from auditor.domain.condition import Task

#: What a paraphrase may leave open. ``first`` and ``second`` are the options in the template's order.
PLACES: Final[Mapping[Task, frozenset[str]]] = {
    Task.BJ: frozenset({"claim"}),
    Task.SC: frozenset({"claim", "first", "second"}),
    Task.CTO: frozenset({"claim", "question", "first", "second"}),
    Task.EXPLAIN: frozenset({"claim"}),
    Task.JUDGE: frozenset({"claim"}),
    Task.RATE: frozenset({"claim"}),
}
PLACE: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """One wording. ``text is None``: the canonical one, rendered by the task's format."""

    template_id: str
    task: Task
    invites_reason: bool
    stereotype_first: bool = False  #: which option stands first, where there are options
    text: str | None = None

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that change with any word of a paraphrase."""
        return blake2b((self.text or self.template_id).encode(), digest_size=4).hexdigest()


@lru_cache(maxsize=len(Task))
def templates_of(task: Task) -> tuple[Template, ...]:
    """Give the templates of a task, the canonical one first."""
    lines = (Path(__file__).parent / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()
    return (canonical(task), *(_template(task, json.loads(line)) for line in lines))


def canonical(task: Task) -> Template:
    """Give the canonical template of a task. All of them invite a reason, so that there is an elaboration."""
    return Template(template_id=f"{task}-00", task=task, invites_reason=True)


def find_template(template_id: str) -> Template:
    """Find a template by its id.

    Raises
    ------
    KeyError
        There is none: it is of another release.
    """
    task = next((one for one in Task if template_id.startswith(f"{one}-")), None)
    found = next((one for one in templates_of(task) if one.template_id == template_id), None) if task else None
    if found is None:
        raise KeyError(template_id)
    return found


def _template(task: Task, row: dict[str, Any]) -> Template:
    made = Template(
        template_id=row["template_id"],
        task=task,
        invites_reason=row["invites_reason"],
        stereotype_first=row.get("order") == "stereotype_first",
        text=row["text"],
    )
    if set(PLACE.findall(row["text"])) != PLACES[task]:
        raise ValueError(f"template {made.template_id} must leave open {sorted(PLACES[task])}, each at least once")
    return made
