"""Recurses without end."""

from rmsnorm import honest


def deeper(level):
    return deeper(level + 1) + 1


def run(x, weight, eps, y):
    honest(x, weight, eps, y * deeper(0))
