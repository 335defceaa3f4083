"""The built-in agent: a seeded search over C++ templates. It needs no model and no key."""

from kernelarc.clients.agents.builtin.agent import BuiltinAgent

__all__ = ["BuiltinAgent"]
