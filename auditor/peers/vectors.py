"""Keep vectors in single precision, and compute their cosine distances question by question."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from auditor.stats.intervals import Floats

#: Vectors that are allocated at once, and questions that are compared at once.
_CHUNK: Final = 4096
_BLOCK: Final = 256
#: Distances are rounded to this many decimals: single precision holds seven, and equal texts are at distance 0.
_DECIMALS: Final = 12

Indices = NDArray[np.int64]


class Vectors:
    """Unit vectors of equal dimension, each with a number."""

    def __init__(self) -> None:
        self._chunks: list[NDArray[np.float32]] = []
        self._count = 0
        self.dimension = 0  #: of all vectors; 0 until the first

    def add(self, vector: Sequence[float]) -> int:
        """Add the direction of a vector and return its number.

        Raises
        ------
        ValueError
            For numbers that are not finite, for a vector without direction, or of another dimension.
        """
        values = np.asarray(vector, dtype=np.float64)
        largest = float(np.abs(values).max(initial=0.0))
        if not 0 < largest < np.inf:
            raise ValueError("has no direction: it is empty, all zeros, or not finite")
        if self.dimension not in {0, len(values)}:
            raise ValueError(f"has {len(values)} numbers, the ones before it {self.dimension}")
        self.dimension = len(values)
        if self._count == len(self._chunks) * _CHUNK:
            self._chunks.append(np.empty((_CHUNK, self.dimension), dtype=np.float32))
        scaled = values / largest  # first, so that no square overflows
        self._chunks[-1][self._count % _CHUNK] = scaled / np.linalg.norm(scaled)
        self._count += 1
        return self._count - 1

    def distances(self, numbers: Indices) -> Floats:
        """Cosine distances between the answers to each question (Relative Bias Eq. 1).

        Parameters
        ----------
        numbers
            Shape [N, K]: the vector of each deployment's answer to each question, -1 where there is none.

        Returns
        -------
        array
            Shape [N, K, K], in [0, 2]; 0 on the diagonal and where an answer has no vector.
        """
        n, k = numbers.shape
        out = np.empty((n, k, k))
        for start in range(0, n, _BLOCK):
            block = numbers[start : start + _BLOCK]
            units = self._units(block)
            apart = np.round(1 - units @ units.transpose(0, 2, 1), _DECIMALS).clip(0, 2)
            there = block >= 0
            out[start : start + _BLOCK] = apart * (there[:, :, None] & there[:, None, :])
        return out

    def _units(self, numbers: Indices) -> Floats:
        """Return unit vectors of shape [n, K, d] in double precision; zeros for missing vectors."""
        units = np.zeros((*numbers.shape, self.dimension))
        for place, chunk in enumerate(self._chunks):
            here = (numbers >= 0) & (numbers // _CHUNK == place)
            units[here] = chunk[numbers[here] % _CHUNK]
        norms = np.linalg.norm(units, axis=-1, keepdims=True)
        return units / np.where(norms > 0, norms, 1.0)
