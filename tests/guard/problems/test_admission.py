"""The built-in problems refuse every wrong answer and accept honest arithmetic.

The gate is the guard's own. Its checks run at small sizes by default, at the ranked ones in the
tests marked slow.
"""

import hashlib
import math
from collections.abc import Callable, Iterator

import pytest

from kernelarc.guard import problems
from kernelarc.guard.schema import Problem, Workload

torch = pytest.importorskip("torch")

from kernelarc.guard.worker.admission import admit  # noqa: E402
from kernelarc.guard.worker.compare import compare  # noqa: E402
from kernelarc.guard.worker.inputs import draw, families_for  # noqa: E402
from kernelarc.guard.worker.reference import Reference  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small tensors: more threads only wait for each other on a shared machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


LOG2_E = math.log2(math.e)


def _seed(purpose: str) -> bytes:
    return hashlib.sha256(purpose.encode()).digest()


def _at_small_size(problem: Problem) -> Problem:
    """The problem with one workload of a size inside its shape rules, ranked everywhere."""
    wanted = {"K": 200, "H": 200, "V": 1000, "G": 2, "B": 2}
    axes = {
        name: min(rule.high, max(rule.low, wanted.get(name, 64)))
        // rule.multiple_of
        * rule.multiple_of
        for name, rule in problem.contract.shapes.items()
    }
    workload = problem.workloads[0].model_copy(update={"axes": axes, "uuid": "small"})
    contract = problem.contract.model_copy(update={"devices": {}})
    return Problem(definition=problem.definition, workloads=(workload,), contract=contract)


def _failures(problem: Problem, seed: str) -> list[str]:
    report = admit(problem, "cpu", seed=_seed(seed), progress=lambda *_: None)
    assert [check.name for check in report.checks].count("honest") == 1
    assert len(report.checks) >= 8
    wrong = [c for c in report.checks if c.refused == (c.name == "honest")]
    assert report.admitted == (not wrong)
    return [f"{check.name}: {check.detail}" for check in wrong]


@pytest.mark.parametrize("name", problems.names())
def test_is_admitted_at_a_small_size(name: str) -> None:
    assert _failures(_at_small_size(problems.get(name)), "small") == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [n for n in problems.names() if not n.endswith("_bf16")])
def test_is_admitted_at_its_ranked_sizes(name: str) -> None:
    assert _failures(problems.get(name), "ranked") == []


@pytest.mark.parametrize("name", problems.names())
def test_a_problem_with_a_wide_tolerance_is_not_admitted(name: str) -> None:
    small = _at_small_size(problems.get(name))
    wide = {
        output: tolerance.model_copy(update={"rtol": 2.0, "atol_rms": 2.0})
        for output, tolerance in small.contract.outputs.items()
    }
    contract = small.contract.model_copy(update={"outputs": wide})
    assert _failures(small.model_copy(update={"contract": contract}), "small") != []


def _in_sequence(values: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """A sum in float32, one term after the other: what a plain loop does."""
    total = torch.zeros_like(values.select(dim, 0))
    for term in values.unbind(dim):
        total = total + term
    return total


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a @ b.mT``, summed over K in sequence."""
    total = a.new_zeros(*a.shape[:-1], b.shape[-2])
    for k in range(a.shape[-1]):
        total = total + a[..., k, None] * b[..., None, :, k]
    return total


def _gemm(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (_product(a, b),)


def _oproj_residual(x: torch.Tensor, weight: torch.Tensor, residual: torch.Tensor) -> object:
    return (residual + _product(x, weight),)


def _gate_up_swiglu(x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor) -> object:
    gate = _product(x, w_gate)
    return (_product(x, w_up) * (gate / (1 + torch.exp2(-gate * LOG2_E))),)


def _rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    mean = _in_sequence(x * x)[:, None] * (1 / x.shape[1])
    return (x * weight * (1 / torch.sqrt(mean + eps)),)


def _add_rmsnorm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> object:
    total = residual + x
    return (*_rmsnorm(total, weight, eps), total)


def _rmsnorm_bwd(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> object:
    width = x.shape[1]
    r = torch.rsqrt(_in_sequence(x * x)[:, None] / width + eps)
    along = _in_sequence(dy * weight * x)[:, None]
    return (r * dy * weight - x * (r * r * r * along / width), _in_sequence(dy * (x * r), 0))


def _softmax(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    power = torch.exp2(x * LOG2_E - x.amax(1, keepdim=True) * LOG2_E)
    return (power * (1 / _in_sequence(power))[:, None],)


def _router_topk(logits: torch.Tensor) -> object:
    ranked, order = torch.sort(logits, dim=1, descending=True, stable=True)
    return (*_softmax(ranked[:, :8]), order[:, :8].to(torch.int32))


def _cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> object:
    counted, target = labels >= 0, labels.clamp(min=0)[:, None]
    top = logits.amax(1, keepdim=True)
    power = torch.exp2((logits - top) * LOG2_E)
    total = _in_sequence(power)[:, None]
    loss = torch.log(total) - (logits.gather(1, target) - top)
    gradient = (power * (1 / total)).scatter_add(1, target, torch.full_like(loss, -1.0))
    return (loss[:, 0] * counted, gradient * counted[:, None])


def _attn_causal_gqa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> object:
    """With a running maximum over blocks of keys and the scale folded into the queries."""
    group, length = q.shape[1] // k.shape[1], q.shape[2]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = _product(q * (q.shape[-1] ** -0.5 * LOG2_E), k)
    scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
    top, total = torch.full(q.shape[:3], -1e30), torch.zeros(q.shape[:3])
    out = torch.zeros_like(q)
    for start in range(0, length, 16):
        block = scores[..., start : start + 16]
        higher = torch.maximum(top, block.amax(-1))
        power, shrink = torch.exp2(block - higher[..., None]), torch.exp2(top - higher)
        values = v[:, :, start : start + 16].mT
        out = out * shrink[..., None] + _product(power, values)
        total, top = total * shrink + power.sum(-1), higher
    return (out * (1 / total)[..., None],)


def _causal_conv1d_silu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> object:
    padded = torch.nn.functional.pad(x, (0, 0, 3, 0))
    total = bias.expand_as(x)
    for tap in (3, 2, 1, 0):
        total = total + padded[:, tap : tap + x.shape[1]] * weight[:, tap]
    return (total / (1 + torch.exp2(-total * LOG2_E)),)


HONEST: dict[str, Callable[..., object]] = {
    "add_rmsnorm": _add_rmsnorm,
    "attn_causal_gqa": _attn_causal_gqa,
    "causal_conv1d_silu": _causal_conv1d_silu,
    "cross_entropy": _cross_entropy,
    "gate_up_swiglu": _gate_up_swiglu,
    "gemm": _gemm,
    "oproj_residual": _oproj_residual,
    "rmsnorm": _rmsnorm,
    "rmsnorm_bwd": _rmsnorm_bwd,
    "router_topk": _router_topk,
    "softmax": _softmax,
}
"""By problem: the same result in float32 by another order and other formulas."""


def _assert_accepts(problem: Problem, workload: Workload, solve: Callable[..., object]) -> None:
    reference = Reference(problem)
    for family in families_for(problem, workload):
        inputs = draw(problem, workload, family=family, seed=_seed(family))
        given = inputs.tensors | inputs.scalars
        outputs = solve(*(given[name] for name in problem.definition.inputs))
        got = dict(zip(problem.definition.outputs, outputs, strict=True))  # type: ignore[call-overload]
        result = compare(problem, workload, reference.expected(inputs), got)
        assert result.passed, (family, result.failure)


@pytest.mark.parametrize("name", HONEST)
def test_accepts_another_order_of_float32_arithmetic_at_a_small_size(name: str) -> None:
    small = _at_small_size(problems.get(name))
    _assert_accepts(small, small.workloads[0], HONEST[name])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", HONEST)
def test_accepts_another_order_of_float32_arithmetic_at_the_ranked_sizes(name: str) -> None:
    problem = problems.get(name)
    for workload in problem.ranked("cpu"):
        _assert_accepts(problem, workload, HONEST[name])
