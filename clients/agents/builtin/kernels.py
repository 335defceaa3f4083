"""Which template serves which problem, under which argument names, in which space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelarc.clients.agents.builtin.spaces import matmul_space
from kernelarc.clients.agents.builtin.space import Space


@dataclass(frozen=True)
class Kernel:
    """A template bound to a problem."""

    template: str
    """Name below ``templates/``, without ``.cpp.j2``."""
    space: Space
    roles: Mapping[str, str]
    """The template's variables as C++ expressions over the problem's arguments."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Variants of the template that are not searched, such as a weight's layout."""
