"""Generated sources against the references in float64, within the problems' own tolerances."""

import ctypes
from itertools import combinations, product

import pytest

from kernelarc.clients.agents.builtin.kernels import KERNELS, kernel_for
from kernelarc.clients.agents.builtin.render import (
    argument_names,
    check_signature,
    declaration,
    render,
)
from kernelarc.guard import problems
from kernelarc.guard.errors import RequestError, UnknownProblem
from kernelarc.guard.schema import cpp_signature
from kernelarc.strategies.similarity import fingerprint, similarity

NAMES = sorted(KERNELS)

SHAPES = {
    "gemm": [{"M": 1, "N": 1, "K": 8}, {"M": 13, "N": 37, "K": 301}, {"M": 48, "N": 64, "K": 128}],
    "oproj_residual": [{"M": 1, "N": 17, "K": 9}, {"M": 29, "N": 35, "K": 130}],
    "gate_up_swiglu": [{"M": 7, "H": 33, "F": 21}, {"M": 16, "H": 131, "F": 40}],
    "rmsnorm": [{"M": 1, "N": 1}, {"M": 5, "N": 67}, {"M": 9, "N": 1024}],
    "add_rmsnorm": [{"M": 1, "N": 7}, {"M": 7, "N": 131}, {"M": 6, "N": 1024}],
    "rmsnorm_bwd": [{"M": 1, "N": 3}, {"M": 11, "N": 133}, {"M": 7, "N": 768}],
    "softmax": [{"M": 1, "N": 1}, {"M": 3, "N": 19}, {"M": 5, "N": 4099}],
    "cross_entropy": [{"M": 9, "V": 21}, {"M": 4, "V": 2051}],
    "router_topk": [{"T": 1, "E": 8}, {"T": 37, "E": 61}],
    "attn_causal_gqa": [
        {"B": 1, "KH": 1, "G": 1, "S": 1, "D": 2},
        {"B": 2, "KH": 2, "G": 3, "S": 67, "D": 20},
        {"B": 1, "KH": 1, "G": 2, "S": 139, "D": 64},
    ],
    "causal_conv1d_silu": [{"B": 2, "T": 1, "C": 3}, {"B": 2, "T": 131, "C": 37}],
    "rope_kv_append": [
        {"T": 1, "QH": 1, "KH": 1, "D": 2},
        {"T": 13, "QH": 5, "KH": 3, "D": 38},
    ],
}
"""Sizes with tails in every direction; the ranked shapes are added to them."""


def source(name, point):
    problem = problems.get(name)
    shapes = [problem.axes(workload) for workload in problem.ranked("cpu")]
    return render(KERNELS[name], point, cpp_signature(problem), shapes)


def check(bench, name, point, optimise="-O3", scales=(1.0,)):
    problem = problems.get(name)
    function = bench.build(source(name, point), optimise)
    ranked = [dict(workload.axes) for workload in problem.ranked("cpu")]
    for axes, scale in product([*SHAPES[name], *ranked], scales):
        assert bench.errors(function, problem, axes, scale) == [], (name, point)


def points(name):
    space = KERNELS[name].space
    return [(s, seed) for s in space.angles for seed in space.seeds(s)]


@pytest.mark.parametrize("name", NAMES)
def test_the_most_elaborate_kernel_agrees_with_the_reference(bench, name):
    space = KERNELS[name].space
    check(bench, name, space.seeds("parallelism")[-1], "-O1")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_every_seed_agrees_with_the_reference_at_small_and_large_scales(bench, name):
    for point in {source(name, p): p for _, p in points(name)}.values():
        check(bench, name, point, scales=(1.0, 0.03, 8.0))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_every_single_step_from_a_seed_agrees_with_the_reference(bench, name):
    space = KERNELS[name].space
    strategy = next(iter(space.angles))
    seed = space.seeds(strategy)[-1]
    for ring in space.steps(strategy, seed):
        for point in ring:
            check(bench, name, point, "-O1")


@pytest.mark.parametrize("name", NAMES)
def test_every_problem_has_four_strategies_with_unlike_code(name):
    """Unlike by the product's own rule, which sees no difference in numbers."""
    marks = {
        strategy: [
            fingerprint({"main.cpp": source(name, s)}) for s in KERNELS[name].space.seeds(strategy)
        ]
        for strategy in KERNELS[name].space.angles
    }
    found = any(
        all(similarity(a, b) < 0.95 for a, b in combinations(chosen, 2))
        for strategies in combinations(marks, 4)
        for chosen in product(*(marks[s] for s in strategies))
    )
    assert found


@pytest.mark.parametrize("name", NAMES)
def test_different_points_give_different_sources(name):
    distinct = {str(point): point for _, point in points(name)}.values()
    assert len({source(name, point) for point in distinct}) == len(distinct)


def test_the_specialised_kernel_still_serves_every_shape(bench):
    space = KERNELS["rmsnorm"].space
    point = space.complete({"dispatch": "shapes", "style": "vector", "unroll": 4})
    text = source("rmsnorm", point)
    assert "N == 1024" in text
    check(bench, "rmsnorm", point)


@pytest.mark.parametrize("select", ["rounds", "list", "keys", "lanes"])
def test_ties_go_to_the_lowest_index_and_negative_zero_equals_zero(bench, select):
    torch = pytest.importorskip("torch")

    logits = torch.tensor([[0.0, -0.0, 3.0, 3.0, -1.0, -0.0, 3.0, 0.0, -2.0, 0.0]] * 17)
    space = KERNELS["router_topk"].space
    run = bench.build(source("router_topk", space.complete({"select": select})), "-O1")
    weights, experts = torch.empty(17, 8), torch.empty(17, 8, dtype=torch.int32)
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (logits, weights, experts)]
    run(*pointers, *map(ctypes.c_int64, (17, 10, 8)))
    assert experts.tolist() == [[2, 3, 6, 0, 1, 5, 7, 9]] * 17


def test_a_declaration_has_no_comment_include_or_line_break():
    text = declaration(cpp_signature(problems.get("causal_conv1d_silu")))
    assert text.startswith('extern "C" void run(')
    assert text.endswith("int64_t W )") or text.endswith("int64_t W)")
    assert "/*" not in text
    assert argument_names(text) == ["x", "weight", "bias", "y", "B", "T", "C", "W"]


def test_a_problem_without_template_is_refused_with_those_that_have_one():
    with pytest.raises(UnknownProblem, match="rmsnorm"):
        kernel_for("moe_ffn")


def test_a_definition_with_other_arguments_is_refused():
    with pytest.raises(RequestError, match="needs the arguments weight"):
        check_signature(
            KERNELS["rmsnorm"],
            'extern "C" void run(const float* x, float* y, double eps, int64_t M, int64_t N);',
        )


def test_a_definition_in_another_precision_is_refused():
    signature = cpp_signature(problems.get("rmsnorm_bf16"))
    with pytest.raises(RequestError, match="uint16_t"):
        check_signature(KERNELS["rmsnorm"], signature)
