"""Which template serves which problem, under which argument names, in which space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelarc.clients.agents.builtin import row_spaces, tile_spaces
from kernelarc.clients.agents.builtin.space import Space
from kernelarc.guard.errors import UnknownProblem


@dataclass(frozen=True)
class Kernel:
    """A template bound to a problem."""

    template: str
    """Name below ``templates/``, without ``.cpp.j2``."""
    space: Space
    roles: Mapping[str, str]
    """The template's variables as C++ expressions over the problem's arguments."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Variants of the template that are not searched, such as a product's epilogue."""


def _roles(**expressions: str) -> dict[str, str]:
    return expressions


KERNELS: Mapping[str, Kernel] = {
    "gemm": Kernel(
        "matmul",
        tile_spaces.matmul("none"),
        _roles(a="a", b0="b", c="c", M="M", N="N", K="K"),
        {"epilogue": "none"},
    ),
    "oproj_residual": Kernel(
        "matmul",
        tile_spaces.matmul("residual"),
        _roles(a="x", b0="weight", residual="residual", c="y", M="M", N="N", K="K"),
        {"epilogue": "residual"},
    ),
    "gate_up_swiglu": Kernel(
        "matmul",
        tile_spaces.matmul("swiglu"),
        _roles(a="x", b0="w_gate", b1="w_up", c="y", M="M", N="F", K="H"),
        {"epilogue": "swiglu"},
    ),
    "rmsnorm": Kernel(
        "rms_norm",
        row_spaces.rms_norm(adds=False),
        # Without an addition the sum is the input itself, and nothing writes to "total".
        _roles(x="x", residual="x", w="weight", total="y", y="y", eps="eps", rows="M", columns="N"),
        {"adds": False},
    ),
    "add_rmsnorm": Kernel(
        "rms_norm",
        row_spaces.rms_norm(adds=True),
        _roles(
            x="x",
            residual="residual",
            w="weight",
            total="residual_out",
            y="y",
            eps="eps",
            rows="M",
            columns="N",
        ),
        {"adds": True},
    ),
    "rmsnorm_bwd": Kernel(
        "rms_norm_backward",
        row_spaces.rms_norm_backward(),
        _roles(dy="dy", x="x", w="weight", dx="dx", dw="dw", eps="eps", rows="M", columns="N"),
    ),
    "softmax": Kernel(
        "softmax",
        row_spaces.softmax(),
        _roles(x="x", y="y", rows="M", columns="N"),
        {"loss": False},
    ),
    "cross_entropy": Kernel(
        "softmax",
        row_spaces.softmax(),
        _roles(x="logits", labels="labels", losses="loss", y="dlogits", rows="M", columns="V"),
        {"loss": True},
    ),
    "router_topk": Kernel(
        "top_k",
        tile_spaces.top_k(),
        _roles(logits="logits", weights="weights", experts="experts", rows="T", count="E"),
    ),
    "attn_causal_gqa": Kernel(
        "attention",
        tile_spaces.attention(),
        _roles(q="q", k="k", v="v", o="o", heads="B * QH", group="G", length="S", depth="D"),
    ),
    "causal_conv1d_silu": Kernel(
        "causal_conv",
        tile_spaces.causal_conv(),
        _roles(x="x", w="weight", bias="bias", y="y", batches="B", steps="T", channels="C"),
    ),
    "rope_kv_append": Kernel(
        "rope_append",
        tile_spaces.rope_append(),
        _roles(
            q="q",
            k="k",
            v="v",
            cosine="cos",
            sine="sin",
            slots="slots",
            keys="key_cache",
            values="value_cache",
            q_out="q_out",
            keys_out="key_cache_out",
            values_out="value_cache_out",
            tokens="T",
            heads="QH",
            kv_heads="KH",
            places="P",
            half="R",
        ),
    ),
}
"""By name of the built-in problem."""


def kernel_for(problem: str) -> Kernel:
    """The kernel of a problem.

    Raises:
        UnknownProblem: the built-in agent has no template for it.
    """
    try:
        return KERNELS[problem]
    except KeyError:
        raise UnknownProblem(problem, sorted(KERNELS)) from None
