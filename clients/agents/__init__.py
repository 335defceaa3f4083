"""Agents: what they have in common (``base``) and the kinds that ship with KernelArc."""
