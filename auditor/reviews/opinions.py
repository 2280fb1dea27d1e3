"""Reviews: a person's label of one layer of one exchange, with the labels that coders use."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS

_LONGEST_NAME: Final = 100
_LONGEST_NOTE: Final = 4000


class Layer(StrEnum):
    """Which of an answer's two layers is labelled."""

    SEL = "sel"
    ELAB = "elab"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the layer."""
        return SELECTION_LABELS if self is Layer.SEL else ELABORATION_LABELS


class AnswerView(StrEnum):
    """What the person saw of the answer."""

    SPLIT = "split"  #: the layer's own part, as its coder reads it
    WHOLE = "whole"  #: the whole answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """One person's label of one layer, given what the person saw."""

    reviewer: str
    layer: Layer
    label: str
    note: str | None = None
    view: AnswerView = AnswerView.SPLIT
    adjudicates: bool = False  #: the person has seen that the others' labels differ, and settles it


class BadOpinion(ValueError):  # noqa: N818 -- said of what was given; the commands and the API name its place
    """What was given is no label of a person; ``field`` names the member that is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field} {message}")
        self.field = field


def opinion_of(
    *, reviewer: object, layer: object, label: object, note: object = None, view: object = AnswerView.SPLIT
) -> Opinion:
    """Check what somebody gave as a label.

    Raises
    ------
    BadOpinion
        It names the member that is wrong.
    """
    if not isinstance(reviewer, str) or not 0 < len(reviewer.strip()) <= _LONGEST_NAME or not reviewer.isprintable():
        raise BadOpinion("reviewer", f"must be a name of 1 to {_LONGEST_NAME} printable characters")
    if not isinstance(layer, str) or layer not in list(Layer):
        raise BadOpinion("layer", f"must be one of {', '.join(Layer)}")
    known = Layer(layer)
    if not isinstance(label, str) or label not in known.labels:
        raise BadOpinion("label", f"must be one of {' '.join(known.labels)} (layer {layer})")
    if not isinstance(view, str) or view not in list(AnswerView):
        raise BadOpinion("view", f"must be one of {', '.join(AnswerView)}")
    if note is not None and not (
        isinstance(note, str)
        and len(note) <= _LONGEST_NOTE
        and ("\0" not in note and not any("\ud800" <= char <= "\udfff" for char in note))
    ):
        raise BadOpinion("note", f"must be text of at most {_LONGEST_NOTE} characters")
    return Opinion(reviewer=reviewer.strip(), layer=known, label=label, note=note or None, view=AnswerView(view))
