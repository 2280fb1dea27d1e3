"""Find statements that a deployment has learned by heart: it continues their scenes word for word.

Three kinds of pieces are asked: the first half of a scene of the pool; the first half of a control scene of the same
form, which no file holds as plain text; and the text before a canary, a random number in every record of the pool. Only
first halves are sent, so an audit does not leak the pool. A deployment that completes scenes of the pool but not the
controls has seen the pool; one that completes a canary has seen its file.
"""

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from auditor.instrument.pool import DEFAULT_POOL, SHIPPED_POOLS, shipped_pool
from auditor.stats.differences import sign_test

#: Pairs of a scene of the pool and a control scene.
PAIRS: Final = 40
#: A deployment with a smaller p has learned scenes of the pool.
ALPHA: Final = 0.01
#: The question; the piece follows.
CONTINUE: Final = (
    "Continue the following text word for word from where it stops. Give only the words that follow, without comment."
)

_WORD: Final = re.compile(r"\w+")
#: Digits of a canary that must be completed. One guess of eight hexadecimal digits in four billion is right.
_CANARY_DIGITS: Final = 8
_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, kw_only=True, slots=True)
class LeakPiece:
    """A text in two parts: the part that is sent, and the part that a deployment could only know."""

    id: str  #: a statement's id, ``control-NN`` or ``canary-N``
    kind: Literal["statement", "control", "canary"]
    start: str
    rest: str

    @property
    def prompt(self) -> str:
        """The message to the deployment."""
        return f"{CONTINUE}\n\n{self.start}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LeakFinding:
    """What one deployment continued word for word."""

    n: int  #: pairs of which both parts were answered
    statements: tuple[str, ...]  #: ids of the scenes that were completed
    controls: int  #: control scenes that were completed
    canaries: tuple[str, ...]  #: canaries that were completed
    p: float  #: exact McNemar test, one-sided: scenes are completed no more often than controls
    leaked: bool  #: a canary was completed, or p < ``ALPHA``


@lru_cache(maxsize=1)
def pieces() -> tuple[LeakPiece, ...]:
    """Return the pieces: ``PAIRS`` scenes of the default pool, as evenly over its categories as possible, the controls
    and the canaries.
    """
    by_category: dict[str | None, list[LeakPiece]] = {}
    for statement in shipped_pool():
        by_category.setdefault(statement.category, []).append(
            _halves(statement.id, "statement", statement.context or "")
        )
    each = PAIRS // len(by_category)
    scenes = [piece for category_pieces in by_category.values() for piece in category_pieces[:each]]
    controls = [_halves(f"control-{at:02}", "control", text) for at, text in enumerate(_control_scenes(), start=1)]
    canaries = [
        LeakPiece(id=f"canary-{at}", kind="canary", start=start, rest=number)
        for at, (start, number) in enumerate(sorted(_canaries()), start=1)
    ]
    return (*scenes, *controls, *canaries)


def is_verbatim(piece: LeakPiece, reply: str) -> bool:
    """Return whether a reply is the rest of the piece, with or without its start; case and punctuation do not count.

    A canary counts with its first eight hexadecimal digits. More words may follow.
    """
    words, start, rest = _words(reply), _words(piece.start), _words(piece.rest)
    if piece.kind == "canary":
        return piece.rest[:_CANARY_DIGITS] in reply.lower()
    if words[: len(start)] == start:
        words = words[len(start) :]
    return words[: len(rest)] == rest


def leak_finding(replies: Mapping[str, str]) -> LeakFinding:
    """Judge one deployment by its replies, by id of the piece. Pieces without a reply are left out.

    Raises
    ------
    ValueError
        No pair of a scene and a control was answered.
    """
    known = {piece.id: is_verbatim(piece, replies[piece.id]) for piece in pieces() if piece.id in replies}
    scenes, controls = ([piece.id for piece in pieces() if piece.kind == kind] for kind in ("statement", "control"))
    pairs = [
        (scene, control) for scene, control in zip(scenes, controls, strict=True) if scene in known and control in known
    ]
    if not pairs:
        raise ValueError("no pair of a scene and a control was answered")
    only_scene = sum(known[scene] and not known[control] for scene, control in pairs)
    only_control = sum(known[control] and not known[scene] for scene, control in pairs)
    p = sign_test(only_scene, only_control)
    canaries = tuple(piece.id for piece in pieces() if piece.kind == "canary" and known.get(piece.id))
    return LeakFinding(
        n=len(pairs),
        statements=tuple(scene for scene, _ in pairs if known[scene]),
        controls=sum(known[control] for _, control in pairs),
        canaries=canaries,
        p=p,
        leaked=bool(canaries) or p < ALPHA,
    )


def _halves(name: str, kind: Literal["statement", "control"], text: str) -> LeakPiece:
    words = text.split()
    middle = len(words) // 2
    return LeakPiece(id=name, kind=kind, start=" ".join(words[:middle]), rest=" ".join(words[middle:]))


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text.casefold())


def _control_scenes() -> list[str]:
    """Read the control scenes. They are packed, so that a model that is trained on this folder does not read them."""
    packed = (_FOLDER / "control_scenes.b64").read_text(encoding="ascii")
    scenes: list[str] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return scenes


def _canaries() -> set[tuple[str, str]]:
    """Return the text before each canary in the pool's file, and the canary."""
    canaries = set()
    for line in (_FOLDER / SHIPPED_POOLS[DEFAULT_POOL]).read_text(encoding="utf-8").splitlines():
        name, _, number = json.loads(line)["canary"].rpartition(" ")
        canaries.add((f'"source": "{DEFAULT_POOL}", "canary": "{name}', number))
    return canaries
