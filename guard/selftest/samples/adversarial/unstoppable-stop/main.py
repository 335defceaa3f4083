"""Raises an error that, asked for its text, makes one of 500 MB."""

import torch


class Endless(Exception):
    def __str__(self):
        return "P" * 500_000_000


def run(x, weight, eps, y):
    raise Endless
