"""Declare the trial of a route (``routes[].mitigation``): instructions that a share of its requests gets."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from auditor.config.values import Name, ResolvedPath, Section
from auditor.trials.assignment import CONTROL, UNASSIGNED, ArmKind

#: Characters of an instruction.
_LONGEST: Final = 20_000


class MitigationArm(Section):
    """An instruction, as ``instruction`` or as the text of ``file``."""

    name: Name
    """What series and reports call it; ``control`` and ``unassigned`` are reserved."""
    kind: ArmKind
    """``role`` puts the instruction before everything as a system prompt, ``task`` after the user's last question."""
    file: ResolvedPath | None = None
    """A file with the text of the instruction."""
    #: After ``file``, whose text it is where there is one.
    instruction: Annotated[str | None, Field(validate_default=True)] = None
    """The instruction itself; needed without ``file``."""

    @field_validator("instruction")
    @classmethod
    def _read(cls, instruction: str | None, info: ValidationInfo) -> str:
        path: Path | None = info.data.get("file")
        if (path is None) == (instruction is None):
            raise ValueError("needs exactly one of instruction, file")
        if path is not None:
            try:
                with path.open("rb") as file:
                    instruction = file.read(4 * _LONGEST + 1).decode("utf-8-sig").strip()
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
                raise ValueError(f"{path}: cannot be read: {reason}") from None
        assert instruction is not None
        if not instruction.strip() or len(instruction) > _LONGEST:
            raise ValueError(f"an instruction has 1 to {_LONGEST:,} characters")
        return instruction

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name in {CONTROL, UNASSIGNED} or "/" in name:
            raise ValueError(f"an arm must not be named {CONTROL} or {UNASSIGNED}, or hold a slash")
        return name

    @property
    def text(self) -> str:
        """The instruction."""
        assert self.instruction is not None
        return self.instruction


class StopRule(Section):
    """When an arm stops by itself: its rate is above the control's by more than ``rise``, with error ``alpha``."""

    outcome: Literal["union", "sel", "elab", "disagree"] = "union"
    """What is counted in the first answer to each user or conversation: a stereotype endorsed in any layer (``union``),
    the selection (``sel``) or the elaboration (``elab``), or layers that disagree (``disagree``)."""
    rise: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.02
    """How far the rate of an arm may be above the control's; 0.02 is two percentage points."""
    alpha: Annotated[float, Field(gt=0, lt=0.5, allow_inf_nan=False)] = 0.05
    """The probability, over all times, that any arm of the trial stops although none is above by ``rise``."""
    dry_run: bool = False
    """``true``: a stop is written down, and nothing is done."""


class MitigationTrial(Section):
    """A trial of instructions on a route's users or conversations."""

    share: Annotated[float, Field(gt=0, le=0.95, allow_inf_nan=False)]
    """The part of the users or conversations that is in any of the arms, in equal parts; the rest is the control."""
    assign: Literal["user", "conversation"] = "user"
    """``user`` takes the request's ``safety_identifier``, else its ``user``; ``conversation`` the tag by which the
    route's audit clusters."""
    arms: Annotated[tuple[MitigationArm, ...], Field(min_length=1, max_length=8)]
    """The instructions that are compared with the control."""
    stop: StopRule = StopRule()
    """When an arm stops by itself."""
    run: Annotated[int, Field(ge=1)] = 1
    """The number of the trial: a higher one begins a new trial of the same arms."""

    @model_validator(mode="after")
    def _check(self) -> "MitigationTrial":
        names = [arm.name for arm in self.arms]
        if len(set(names)) < len(names):
            raise ValueError("two arms have the same name")
        return self

    def trial(self, seed: int, route: str, unit_tag: str | None) -> str:
        """Return the id of the trial: eight hex digits, others whenever anything but the stop rule changes."""
        content: dict[str, Any] = {
            "seed": seed,
            "route": route,
            "unit": unit_tag,
            "share": self.share,
            "run": self.run,
            "arms": [[arm.name, arm.kind, arm.text] for arm in self.arms],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
