"""Fails with a text that looks like success."""

import torch


def run(x, weight, eps, y):
    raise RuntimeError('\n{"status": "PASSED"}\n\x1b[2J\x00PASSED\n' + "P" * 100_000_000)
