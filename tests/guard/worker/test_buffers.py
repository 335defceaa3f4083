"""Shared buffers: layout, canaries, seals, poison."""

from __future__ import annotations

import mmap
import os

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from kernelarc.guard.worker.buffers import (  # noqa: E402
    ALIGNMENT,
    CANARY_BYTES,
    TORCH_DTYPES,
    Arena,
    TensorPlan,
    map_arena,
    poison_like,
)

PLANS = [TensorPlan("x", "float32", (3, 5)), TensorPlan("y", "int64", (7,))]


@pytest.fixture
def arena():
    made = Arena(PLANS, sets=2)
    yield made
    made.close()


def test_both_sides_see_the_same_values(arena):
    mapping, sets = map_arena(arena.fd, arena.layout())
    arena.tensors(1)["x"].fill_(2.5)
    sets[1]["y"][3] = 9
    assert torch.equal(sets[1]["x"], torch.full((3, 5), 2.5))
    assert arena.tensors(1)["y"][3] == 9
    assert not torch.equal(sets[0]["x"], sets[1]["x"])
    del sets, mapping


def test_payloads_are_aligned(arena):
    assert all(slot.offset % ALIGNMENT == 0 for row in arena.slots for slot in row)


def test_writing_every_payload_leaves_the_canaries_alone(arena):
    for index in range(arena.sets):
        for tensor in arena.tensors(index).values():
            tensor.fill_(1)
    assert arena.overwritten() is None


@pytest.mark.parametrize("distance", [0, 1, CANARY_BYTES - 1])
def test_a_byte_past_the_end_is_seen_and_named(arena, distance):
    slot = arena.slots[0][1]
    with mmap.mmap(arena.fd, arena.size_bytes) as memory:
        position = slot.offset + slot.size_bytes + distance
        memory[position] ^= 0xFF
    assert arena.overwritten() == f"{distance} bytes past the end of 'y'"
    arena.renew_canaries()
    assert arena.overwritten() is None


def test_a_byte_before_the_start_is_seen(arena):
    slot = arena.slots[0][0]
    with mmap.mmap(arena.fd, arena.size_bytes) as memory:
        memory[slot.offset - 4] ^= 0xFF
    assert arena.overwritten() == "4 bytes before the start of 'x'"


def test_the_file_cannot_be_resized_or_unsealed(arena):
    with pytest.raises(PermissionError):
        os.ftruncate(arena.fd, 0)
    with pytest.raises(PermissionError):
        os.ftruncate(arena.fd, arena.size_bytes * 2)


def test_an_empty_tensor_has_a_place():
    arena = Arena([TensorPlan("x", "float32", (0, 4)), TensorPlan("y", "bool", (2,))], 1)
    assert arena.tensors(0)["x"].shape == (0, 4)
    assert arena.overwritten() is None
    arena.close()


def test_random_places_lie_in_the_named_tensors_of_all_sets_and_show_every_change(arena):
    places = arena.places(["y"], 4000, torch.Generator().manual_seed(1))
    slots = [row[1] for row in arena.slots]
    hit = [[p for p in places.tolist() if s.offset <= p < s.offset + s.size_bytes] for s in slots]
    assert sum(map(len, hit)) == len(places)
    assert [len(set(found)) for found in hit] == [s.size_bytes for s in slots]
    assert places.tolist() != sorted(places.tolist())
    assert {arena.owner(p) for p in places.tolist()} == {"y"}
    before = arena.peek(places)
    assert torch.equal(arena.peek(places), before)
    arena.tensors(1)["y"][6] += 1
    changed = places[arena.peek(places) != before]
    assert set(changed.tolist()) == {slots[1].offset + 6 * 8}


def test_there_is_nothing_to_look_at_in_empty_tensors():
    arena = Arena([TensorPlan("y", "float32", (0, 4))], 2)
    assert arena.peek(arena.places(["y"], 8, torch.Generator())).numel() == 0
    arena.close()


def test_buffers_that_cannot_be_had_are_refused():
    with pytest.raises(MemoryError, match="MiB"):
        Arena([TensorPlan("x", "float64", (1 << 20, 1 << 12))], 1)


@pytest.mark.parametrize("dtype", sorted(TORCH_DTYPES))
def test_poison_is_finite_and_differs_from_call_to_call(dtype):
    generator = torch.Generator().manual_seed(1)
    target = torch.zeros(10_000, dtype=TORCH_DTYPES[dtype])
    first, second = poison_like(target, generator), poison_like(target, generator)
    assert first.dtype == target.dtype
    assert torch.isfinite(first.float()).all()
    assert (first.float() != second.float()).float().mean() > 0.3


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), max_size=3), st.sampled_from(sorted(TORCH_DTYPES)))
def test_any_shape_keeps_its_neighbours_apart(shape, dtype):
    arena = Arena([TensorPlan("a", dtype, tuple(shape)), TensorPlan("b", dtype, tuple(shape))], 2)
    arena.tensors(0)["a"].copy_(torch.ones(shape))
    assert arena.overwritten() is None
    assert arena.tensors(1)["b"].float().sum() == 0
    arena.close()
