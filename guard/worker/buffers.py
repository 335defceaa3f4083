"""Buffers that judge and runner share: one sealed memory file per workload.

An arena holds ``sets`` copies of all tensors of a call. Around each tensor lie canary bytes, so
that a write past either end is seen to the byte (``OUT_OF_BOUNDS``)::

    | canary | x (set 0) | canary | canary | y (set 0) | canary | canary | x (set 1) | ...

The file is sealed against resizing: a runner that truncates it cannot make the judge fault.
The judge's tensors over the arena are views; nothing that must stay private is ever in here.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch

CANARY_BYTES = 4096
"""On each side of each tensor: catches a stray vector store and a row too many."""
ALIGNMENT = 64
"""Payload alignment in bytes: a cache line, and enough for any CPU vector load."""
MAX_ARENA_BYTES = 2 << 30

TORCH_DTYPES: dict[str, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "bool": torch.bool,
}
"""Dtypes of a definition that can be placed in a buffer."""


@dataclass(frozen=True)
class Slot:
    """Place of one tensor in one set of an arena."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size_bytes: int

    def as_json(self) -> dict[str, Any]:
        """What the runner needs to map it."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "offset": self.offset,
        }


@dataclass(frozen=True)
class TensorPlan:
    """Name, dtype and shape of one tensor of a call."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the contiguous tensor."""
        return math.prod(self.shape) * TORCH_DTYPES[self.dtype].itemsize


class Arena:
    """A sealed memory file with ``sets`` copies of the tensors in ``plans``."""

    def __init__(self, plans: list[TensorPlan], sets: int) -> None:
        self.sets = sets
        self.slots: list[list[Slot]] = []
        cursor = 0
        for _ in range(sets):
            row = []
            for plan in plans:
                offset = _align(cursor + CANARY_BYTES)
                row.append(Slot(plan.name, plan.dtype, plan.shape, offset, plan.size_bytes))
                cursor = offset + plan.size_bytes + CANARY_BYTES
            self.slots.append(row)
        self.size_bytes = _align(cursor, mmap.PAGESIZE)
        if self.size_bytes > MAX_ARENA_BYTES:
            raise MemoryError(f"the buffers of one call need {self.size_bytes >> 20} MiB")
        self.fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size_bytes)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        self._map = mmap.mmap(self.fd, self.size_bytes)
        self._bytes = torch.frombuffer(self._map, dtype=torch.uint8)
        self._views = [
            {s.name: _view(self._bytes, s.offset, s.dtype, s.shape) for s in row}
            for row in self.slots
        ]
        self._canaries = self._canary_ranges()
        self._canary_values = [
            torch.randint(0, 256, (stop - start,), dtype=torch.uint8)
            for start, stop in self._canaries
        ]
        self.renew_canaries()

    def tensors(self, index: int) -> dict[str, torch.Tensor]:
        """Judge's views of the tensors of one set, by name."""
        return self._views[index]

    def places(
        self, names: Collection[str], count: int, generator: torch.Generator
    ) -> torch.Tensor:
        """Positions of random bytes, in random order, in the named tensors of all sets."""
        slots = [s for row in self.slots for s in row if s.name in names and s.size_bytes]
        if not slots:
            return torch.empty(0, dtype=torch.int64)
        which = torch.randint(len(slots), (count,), generator=generator)
        inside = torch.randint(1 << 62, (count,), generator=generator)
        offsets = torch.tensor([s.offset for s in slots])[which]
        return offsets + inside % torch.tensor([s.size_bytes for s in slots])[which]

    def peek(self, places: torch.Tensor) -> torch.Tensor:
        """The bytes at some positions, as they are now."""
        return self._bytes[places]

    def owner(self, place: int) -> str:
        """The tensor that a position lies in."""
        flat = [slot for row in self.slots for slot in row]
        return next(s.name for s in flat if s.offset <= place < s.offset + s.size_bytes)

    def layout(self) -> list[list[dict[str, Any]]]:
        """The layout in the form that is sent to the runner."""
        return [[slot.as_json() for slot in row] for row in self.slots]

    def renew_canaries(self) -> None:
        """Write the canaries again."""
        for (start, stop), value in zip(self._canaries, self._canary_values, strict=True):
            self._bytes[start:stop] = value

    def overwritten(self) -> str | None:
        """The tensor next to a canary that changed, or ``None``."""
        for index, ((start, stop), value) in enumerate(
            zip(self._canaries, self._canary_values, strict=True)
        ):
            if not torch.equal(self._bytes[start:stop], value):
                return self._neighbour(start, index)
        return None

    def close(self) -> None:
        """Unmap and close; views become invalid."""
        self._views = []
        self._canary_values = []
        self._bytes = torch.empty(0)
        # A caller may still hold a view; the mapping then goes when the view does.
        with contextlib.suppress(BufferError):
            self._map.close()
        os.close(self.fd)

    def _canary_ranges(self) -> list[tuple[int, int]]:
        edges = [0]
        for row in self.slots:
            for slot in row:
                edges += [slot.offset, slot.offset + slot.size_bytes]
        edges.append(self.size_bytes)
        return [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]

    def _neighbour(self, start: int, index: int) -> str:
        flat = [slot for row in self.slots for slot in row]
        changed = self._bytes[slice(*self._canaries[index])] != self._canary_values[index]
        first = int(changed.nonzero()[0])
        before = flat[index - 1] if index > 0 else None
        after = flat[index] if index < len(flat) else None
        if before is not None and (after is None or first < CANARY_BYTES):
            return f"{first} bytes past the end of {before.name!r}"
        assert after is not None
        return f"{after.offset - (start + first)} bytes before the start of {after.name!r}"


def _align(value: int, alignment: int = ALIGNMENT) -> int:
    return (value + alignment - 1) // alignment * alignment


def _view(base: torch.Tensor, offset: int, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    kind = TORCH_DTYPES[dtype]
    size = math.prod(shape) * kind.itemsize
    return base[offset : offset + size].view(kind).view(shape)


def map_arena(
    fd: int, layout: list[list[dict[str, Any]]]
) -> tuple[mmap.mmap, list[dict[str, torch.Tensor]]]:
    """Map an arena on the runner's side; returns the mapping and the tensors of each set."""
    mapping = mmap.mmap(fd, os.fstat(fd).st_size)
    base = torch.frombuffer(mapping, dtype=torch.uint8)
    return mapping, [
        {s["name"]: _view(base, s["offset"], s["dtype"], tuple(s["shape"])) for s in row}
        for row in layout
    ]


def poison_like(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A random finite pattern in ``tensor``'s dtype that no right answer looks like.

    Built from a tile of 4093 random elements (a prime, so that it does not line up with rows):
    a fresh pattern costs a copy, not a pass of the random generator over the whole tensor.
    """
    tile = _poison_tile(tensor.dtype, generator)
    count = tensor.numel()
    return tile.repeat(count // tile.numel() + 1)[:count].view(tensor.shape)


def _poison_tile(dtype: torch.dtype, generator: torch.Generator, count: int = 4093) -> torch.Tensor:
    if dtype is torch.bool:
        return torch.randint(0, 2, (count,), generator=generator, dtype=torch.int8).to(dtype)
    if dtype.is_floating_point:
        spread = torch.randn(count, generator=generator, dtype=torch.float32)
        return ((spread.abs() + 0.5) * spread.sign() * 83.0).to(dtype)
    low = -(2**30) if dtype in (torch.int32, torch.int64) else torch.iinfo(dtype).min
    return torch.randint(low, low // 2, (count,), generator=generator, dtype=torch.int64).to(dtype)
