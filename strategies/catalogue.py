"""All playbooks and guides of this installation, and which of them fit a problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Self, TypeVar

from kernelarc.guard.errors import RequestError, did_you_mean
from kernelarc.guard.schema.solution import Language
from kernelarc.strategies.playbook import (
    CatalogueError,
    Category,
    Device,
    Guide,
    Strategy,
    read_pages,
)

__all__ = ["Catalogue", "CatalogueError", "Guide", "Strategy", "load", "understood"]

ValueT = TypeVar("ValueT")

_DEVICES: dict[str, Device] = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}
_LANGUAGES = {language.value: language for language in Language}
_WORDS: dict[Category, str] = {
    "attention": "attn decode flash sdpa",
    "convolution": "conv conv1d conv2d stencil",
    "data-movement": "cache copy gather kv permute positional rope rotary scatter transpose",
    "elementwise": "activation gelu pointwise silu swiglu",
    "loss": "cross-entropy entropy nll",
    "matmul": "bmm ffn gemm gemv linear matrix mlp moe oproj projection",
    "normalisation": "layernorm norm normalization rmsnorm",
    "reduction": "reduce scan sum",
    "selection": "router routing sort topk",
    "softmax": "logsumexp",
}
"""Other words for each category, as problems use them."""
_MEANING: dict[str, Category] = {
    word: category for category, words in _WORDS.items() for word in (category, *words.split())
}


@dataclass(frozen=True)
class Catalogue:
    """Strategies and guides by id."""

    strategies: Mapping[str, Strategy]
    guides: Mapping[str, Guide]

    def ids(self) -> list[str]:
        """Ids of all strategies, sorted."""
        return list(self.strategies)

    def get(self, strategy_id: str, *, offer: Iterable[str] | None = None) -> Strategy:
        """The strategy of that id.

        Args:
            strategy_id: Of any strategy.
            offer: What to offer instead of an unknown one; by default all.

        Raises:
            RequestError: There is none; the text names the nearest of ``offer``, then all of them.
        """
        return _lookup("strategy", self.strategies, strategy_id, offer)

    def guide_ids(self) -> list[str]:
        """Ids of all guides, sorted."""
        return list(self.guides)

    def guide(self, guide_id: str) -> Guide:
        """The guide of that id.

        Raises:
            RequestError: There is none; the text lists the known ids.
        """
        return _lookup("guide", self.guides, guide_id)

    def applicable(self, category: str, device: str, language: str | None = None) -> list[Strategy]:
        """The strategies that fit a problem: by rank, those made for its category first.

        Args:
            category: The problem's own word for what it computes (``gemm``, ``rms norm``, ...).
                A word that is not understood rules nothing out.
            device: ``cpu`` or ``gpu`` (``cuda`` means the same).
            language: Only those that can be expressed in it.

        Raises:
            RequestError: Unknown device or language; the text lists the known ones.
        """
        place = _lookup("device", _DEVICES, device)
        spoken = None if language is None else _lookup("language", _LANGUAGES, language)
        kind = understood(category)
        fitting = [s for s in self.strategies.values() if s.fits(kind, place, spoken)]
        return sorted(fitting, key=lambda s: (s.rank, kind not in s.applies_to.categories))

    @classmethod
    def read(cls, folder: Traversable) -> Self:
        """Read ``playbooks/*.md`` and ``guides/*.md`` below ``folder``.

        Raises:
            CatalogueError: A file does not satisfy its model or names an unknown conflict.
        """
        strategies = read_pages(folder / "playbooks", Strategy)
        for strategy in strategies.values():
            for other in strategy.conflicts:
                if strategy.id not in getattr(strategies.get(other), "conflicts", ()):
                    raise CatalogueError(
                        f"{strategy.id}.md: it names the conflict {other!r}, which does not exist "
                        f"or does not name it back. Known ids: {', '.join(strategies)}."
                    )
        return cls(strategies, read_pages(folder / "guides", Guide))


@cache
def load() -> Catalogue:
    """The catalogue of this installation, read once per process.

    Raises:
        CatalogueError: A file of this installation is malformed.
    """
    return Catalogue.read(files("kernelarc.strategies"))


def understood(category: str) -> Category | None:
    """The category that a problem's own word means; ``None`` if it is not understood.

    The last word that is understood decides: ``attention output projection`` is a projection.
    """
    text = category.strip().lower().replace("_", "-").replace(" ", "-")
    candidates = [text, *reversed(text.split("-"))]
    return next((_MEANING[word] for word in candidates if word in _MEANING), None)


def _lookup(
    kind: str, known: Mapping[str, ValueT], name: str, offer: Iterable[str] | None = None
) -> ValueT:
    if name not in known:
        allowed = list(known if offer is None else offer)
        raise RequestError(
            f"unknown {kind} {name!r}.{did_you_mean(name, allowed)} Allowed: {', '.join(allowed)}."
        )
    return known[name]
