"""A body that arrives in pieces, and is read whole."""

from io import BytesIO


class Pieces:
    """Bytes that arrive piece by piece. Adding takes time linear in the piece, however small the pieces are."""

    __slots__ = ("_begun", "_rest", "size")

    def __init__(self) -> None:
        self.size = 0  #: bytes that have been added
        self._begun = b""  # the first piece, which usually is the whole
        self._rest: BytesIO | None = None  # all of it, once there are several pieces

    def add(self, piece: bytes) -> None:
        """Add a piece."""
        if self._rest is not None:
            self._rest.write(piece)
        elif self._begun:
            self._rest = BytesIO()
            self._rest.write(self._begun)
            self._rest.write(piece)
        else:
            self._begun = piece
        self.size += len(piece)

    def whole(self) -> bytes:
        """Return all that has been added."""
        return self._begun if self._rest is None else self._rest.getvalue()

    def clear(self) -> None:
        """Forget all that has been added."""
        self.size, self._begun, self._rest = 0, b"", None
