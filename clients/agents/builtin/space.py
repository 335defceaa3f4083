"""Parameter spaces: what a template can vary, and what each strategy fixes of it.

A point is a complete assignment of values. Two points that would give the same source are one
point: a parameter that has no effect beside the others is set to its first value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Value = str | int
Point = Mapping[str, Value]


@dataclass(frozen=True)
class Parameter:
    """One choice of a template."""

    name: str
    values: tuple[Value, ...]
    """In order: neighbours are similar. The first one is the default."""
    when: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """Values that other, earlier parameters must have for this one to matter."""


@dataclass(frozen=True)
class Angle:
    """A strategy as seen by one template: what makes code belong to it, and where to begin."""

    requires: Mapping[str, tuple[Value, ...]]
    """Allowed values; a point with any other is outside the strategy."""
    seeds: tuple[Point, ...]
    """Partial points to try first, each a different idea."""


@dataclass(frozen=True)
class Space:
    """All points of one template."""

    parameters: tuple[Parameter, ...]
    angles: Mapping[str, Angle]
    """By strategy id."""

    def complete(self, partial: Point) -> Point:
        """The canonical point with these values; what is not given or has no effect is default.

        Raises:
            KeyError: a name that is no parameter.
            ValueError: a value outside its parameter's domain.
        """
        unknown = set(partial) - {p.name for p in self.parameters}
        if unknown:
            raise KeyError(f"no such parameters: {', '.join(sorted(unknown))}")
        point: dict[str, Value] = {}
        for parameter in self.parameters:
            value = partial.get(parameter.name, parameter.values[0])
            if value not in parameter.values:
                raise ValueError(f"{parameter.name}={value} is not one of {parameter.values}")
            active = all(point[name] in allowed for name, allowed in parameter.when.items())
            point[parameter.name] = value if active else parameter.values[0]
        return point

    def fits(self, strategy: str, point: Point) -> bool:
        """Whether a canonical point belongs to a strategy."""
        requires = self.angles[strategy].requires
        return all(point[name] in allowed for name, allowed in requires.items())

    def project(self, strategy: str, point: Point) -> Point | None:
        """The point moved into a strategy, each demanded value replaced by the first allowed.

        ``None`` when the demanded values have no effect beside the others.
        """
        moved = dict(point)
        for name, allowed in self.angles[strategy].requires.items():
            if moved[name] not in allowed:
                moved[name] = allowed[0]
        complete = self.complete(moved)
        return complete if self.fits(strategy, complete) else None

    def seeds(self, strategy: str) -> list[Point]:
        """The strategy's first points, complete."""
        return [self.complete(seed) for seed in self.angles[strategy].seeds]

    def steps(self, strategy: str, point: Point) -> Iterator[list[Point]]:
        """Points one coordinate away, in rings: other words first, since they change the code
        most; then numbers by the longest stride, by half of it, and so on.
        """
        words = [p for p in self.parameters if isinstance(p.values[0], str)]
        numbers = [p for p in self.parameters if isinstance(p.values[0], int)]
        yield self._moved(strategy, point, {p.name: p.values for p in words})
        longest = max((len(p.values) for p in numbers), default=0)
        stride = 1 << max(0, (longest - 1).bit_length() - 1)
        while stride:
            reached = {}
            for parameter in numbers:
                at = parameter.values.index(point[parameter.name])
                ends = (at + stride, at - stride)
                reached[parameter.name] = tuple(
                    parameter.values[end] for end in ends if 0 <= end < len(parameter.values)
                )
            yield self._moved(strategy, point, reached)
            stride //= 2

    def _moved(
        self, strategy: str, point: Point, values: Mapping[str, tuple[Value, ...]]
    ) -> list[Point]:
        """The points of the strategy in which one parameter has another of its given values."""
        moved = [
            self.complete({**point, name: value})
            for name, choices in values.items()
            for value in choices
        ]
        return [p for p in moved if p != point and self.fits(strategy, p)]

    def parse(self, text: str) -> Point | None:
        """Read what ``describe`` wrote; ``None`` when it is empty or not a point of this space.

        Names that are missing take their defaults: an older version may not have known them.
        """
        domains = {p.name: {str(v): v for v in p.values} for p in self.parameters}
        partial: dict[str, Value] = {}
        for word in text.split():
            name, _, value = word.partition("=")
            if value not in domains.get(name, {}):
                return None
            partial[name] = domains[name][value]
        return self.complete(partial) if partial else None


_TAIL = re.compile(r"\[params: ([a-z0-9_= ]*)\]")


def structure(point: Point) -> str:
    """The choices that are words, not numbers: points that differ here are different code."""
    return describe({name: value for name, value in point.items() if isinstance(value, str)})


def describe(point: Point) -> str:
    """``name=value`` words in alphabetical order; equal points give equal text."""
    return " ".join(f"{name}={point[name]}" for name in sorted(point))


def tail(point: Point) -> str:
    """The machine-readable end of a note or an insight: ``[params: unroll=4 width=16]``."""
    return f"[params: {describe(point)}]"


def read_tail(text: str, space: Space) -> Point | None:
    """The point named at the end of a note or an insight, if it is one of this space."""
    found = _TAIL.findall(text)
    return space.parse(found[-1]) if found else None
