import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.clients.agents.builtin.kernels import KERNELS
from kernelarc.clients.agents.builtin.space import (
    Angle,
    Parameter,
    Space,
    describe,
    read_tail,
    structure,
    tail,
)

SMALL = Space(
    (
        Parameter("style", ("plain", "vector")),
        Parameter("unroll", (1, 2, 4, 8), {"style": ("vector",)}),
        Parameter("threads", ("one", "all")),
    ),
    {"wide": Angle({"style": ("vector",), "unroll": (4, 8)}, ({"style": "vector", "unroll": 4},))},
)


@st.composite
def points(draw):
    space = KERNELS[draw(st.sampled_from(sorted(KERNELS)))].space
    partial = {p.name: draw(st.sampled_from(p.values)) for p in space.parameters}
    return space, space.complete(partial)


def test_a_parameter_without_effect_takes_its_default():
    assert SMALL.complete({"style": "plain", "unroll": 8})["unroll"] == 1
    assert SMALL.complete({"style": "vector", "unroll": 8})["unroll"] == 8


@pytest.mark.parametrize(
    ("partial", "error"), [({"unrol": 2}, KeyError), ({"unroll": 3}, ValueError)]
)
def test_what_is_no_parameter_or_no_value_is_refused(partial, error):
    with pytest.raises(error, match="unrol"):
        SMALL.complete(partial)


def test_projection_replaces_only_what_the_strategy_demands():
    moved = SMALL.project("wide", SMALL.complete({"threads": "all"}))
    assert moved == {"style": "vector", "unroll": 4, "threads": "all"}


def test_other_words_come_before_numbers_and_long_strides_before_short_ones():
    point = SMALL.complete({"style": "vector", "unroll": 8})
    words, *rings = SMALL.steps("wide", point)
    assert words == [{"style": "vector", "unroll": 8, "threads": "all"}]
    assert [[p["unroll"] for p in ring] for ring in rings] == [[], [4]]


@given(points())
def test_completing_a_complete_point_changes_nothing(drawn):
    space, point = drawn
    assert space.complete(point) == point


@given(points(), st.text(max_size=40))
def test_a_point_survives_its_way_through_a_note(drawn, words):
    space, point = drawn
    assert read_tail(f"{words} {tail(point)}", space) == point


@given(st.text(alphabet="unroltheads=1248 []:params,") | st.text())
def test_text_of_others_is_a_point_of_the_space_or_nothing(text):
    point = read_tail(f"[params: {text}]", SMALL)
    assert point is None or SMALL.complete(point) == point


def test_an_empty_tail_is_no_point():
    assert read_tail("[params: ]", SMALL) is None


@given(points())
def test_steps_stay_inside_the_strategy_and_move(drawn):
    space, point = drawn
    for strategy in space.angles:
        start = space.project(strategy, point)
        for ring in space.steps(strategy, start) if start else ():
            for neighbour in ring:
                assert space.fits(strategy, neighbour)
                assert neighbour != start
                assert space.complete(neighbour) == neighbour


@given(points())
def test_projection_lands_inside_the_strategy(drawn):
    space, point = drawn
    for strategy in space.angles:
        moved = space.project(strategy, point)
        assert moved is None or space.fits(strategy, moved)
        if space.fits(strategy, point):
            assert moved == point


def test_every_seed_of_every_strategy_belongs_to_it():
    for name, kernel in KERNELS.items():
        for strategy in kernel.space.angles:
            seeds = kernel.space.seeds(strategy)
            assert seeds, (name, strategy)
            assert all(kernel.space.fits(strategy, seed) for seed in seeds), (name, strategy)


def test_structure_ignores_numbers():
    a = SMALL.complete({"style": "vector", "unroll": 2})
    b = SMALL.complete({"style": "vector", "unroll": 8})
    assert structure(a) == structure(b)
    assert describe(a) != describe(b)
