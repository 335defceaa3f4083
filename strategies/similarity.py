"""How alike two candidates are, judged from their text only.

A source is cut into tokens (comments and white space are dropped) and looked at in two views:

* **exact**: the tokens as written. Equal digests mean the same program up to its formatting.
* **shape**: numbers become one symbol, and each identifier becomes the distance to its previous
  use in the same run of tokens. Tuning a constant or renaming a variable changes nothing here.
  (Strings keep their words: in these programs they are assembly or device code.) The view keeps
  a winnowed set of hashes of token runs, so that comparing two fingerprints is one set
  intersection.

A pragma, an intrinsic or a library call is a few tokens of text and can still be a different
approach (``#pragma omp parallel for``). These *levers* (directives, and called names that the
source does not define itself) are therefore compared as a second, small set.

The text is never parsed or evaluated; the expressions below run in linear time on any input.

Source: winnowing after Schleimer, Wilkerson and Aiken, "Winnowing: local algorithms for document
fingerprinting", 2003.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

SHINGLE = 10
"""Tokens in one run. Unrelated loops share shorter runs; longer ones react to everything."""
WINDOW = 5
"""Of each this many neighbouring run hashes the least is kept: about one run in three."""
LEVER_WEIGHT = 0.25
"""Share of the similarity that is lost when two sources have no lever in common."""

# Every alternative that opens something also matches when it is never closed: no rescanning, so
# hostile text costs no more than honest text.
_C_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)
  | (?P<directive>^[ \t]*\#[ \t]*pragma[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.'])*+)
  | (?P<name>[A-Za-z_]\w*+)
  | (?P<sign>->|\+\+|--|<<=?|>>=?|[-+*/%&|^=!<>]=|&&|\|\||::|\S)
    """,
    re.VERBOSE | re.MULTILINE,
)
_PYTHON_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
  | (?P<block>[rRbBfFuU]{0,2}(?:"{3}(?:[^"\\]|\\.|"(?!""))*+(?:"{3})?|'{3}(?:[^'\\]|\\.|'(?!''))*+(?:'{3})?))
  | (?P<string>[rRbBfFuU]{0,2}(?:"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?))
  | (?P<number>\.?[0-9](?:[eE][+-]|[\w.])*+)
  | (?P<name>[^\W\d]\w*+)
  | (?P<sign>->|\*\*=?|//=?|<<=?|>>=?|[-+*/%&|^=!<>@:]=|\S)
    """,  # noqa: E501 -- one alternative a line
    re.VERBOSE | re.DOTALL,
)
_CPP_KEYWORDS = """
    alignas alignof auto bool break case catch char class const constexpr continue decltype default
    delete do double else enum extern false final float for goto if inline int long mutable
    namespace new noexcept nullptr operator private public register return short signed sizeof
    static static_assert struct switch template this throw true try typedef typename union
    unsigned using virtual void volatile while
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t
    __restrict __restrict__ __global__ __device__ __shared__ __constant__ __host__
    __launch_bounds__ __forceinline__
    include define undef ifdef ifndef endif
"""
_PYTHON_KEYWORDS = """
    and as assert async await def del elif except from global import in is lambda None nonlocal
    not or pass raise True False with yield
"""
_KEYWORDS = frozenset(_CPP_KEYWORDS.split() + _PYTHON_KEYWORDS.split())
_DEFINING = frozenset(_CPP_KEYWORDS.split()) - {
    *("return", "else", "case", "throw", "new", "delete", "do", "goto"),
} | {"def"}
"""Keywords after which a name is declared, ``float row(``; all others may stand before a call."""
_START = ("(", "[", "{", ",", "=", "+")
"""Signs after which a long Python string is a value, hence code rather than a docstring."""


@dataclass(frozen=True)
class Fingerprint:
    """What is remembered of a candidate's text. Hashable; equal sources give equal values.

    A source of 200 lines gives some 500 hashes, about 6 kB when encoded.
    """

    exact: int
    """64-bit digest of the tokens as written: equal up to comments and white space."""
    shape: frozenset[int]
    """Winnowed 64-bit hashes of abstracted token runs."""
    levers: frozenset[int]
    """64-bit hashes of the directives and of the called names that the source does not define."""

    def encode(self) -> str:
        """One line of ASCII that ``decode`` turns back into an equal fingerprint."""
        numbers = [self.exact, len(self.shape), *sorted(self.shape), *sorted(self.levers)]
        return base64.b64encode(struct.pack(f"<{len(numbers)}Q", *numbers)).decode("ascii")

    @classmethod
    def decode(cls, text: str) -> Self:
        """The fingerprint that ``encode`` wrote.

        Raises:
            ValueError: ``text`` is not the output of ``encode``.
        """
        data = base64.b64decode(text, validate=True)
        if len(data) < 16 or len(data) % 8:
            raise ValueError("not an encoded fingerprint: wrong length")
        exact, count, *hashes = struct.unpack(f"<{len(data) // 8}Q", data)
        if count > len(hashes):
            raise ValueError("not an encoded fingerprint: it is cut short")
        return cls(exact, frozenset(hashes[:count]), frozenset(hashes[count:]))


class _Token(NamedTuple):
    kind: str
    """``keyword``, ``name``, ``number``, ``string``, ``directive`` or ``sign``."""
    text: str


_EDGE = _Token("sign", "")


def fingerprint(files: Mapping[str, str]) -> Fingerprint:
    """Fingerprint of a solution's sources.

    Args:
        files: Source text by path. Only the suffix of a path matters (``.py`` is Python, anything
            else is read as C++), so renaming a file changes nothing.

    Returns:
        The same value in every process and on every host.
    """
    exact: list[str] = []
    shape: set[int] = set()
    levers: set[int] = set()
    for path, source in files.items():
        tokens = list(_python_tokens(source) if path.endswith(".py") else _c_tokens(source))
        if not tokens:
            continue
        exact.append("\x00".join(token.text for token in tokens))
        shape.update(_winnow([_hash(run) for run in _abstract_runs(tokens)]))
        levers.update(_hash(lever) for lever in _levers(tokens))
    return Fingerprint(_hash("\x01".join(sorted(exact))), frozenset(shape), frozenset(levers))


def similarity(a: Fingerprint, b: Fingerprint) -> float:
    """How alike two candidates are: 0 (nothing in common) to 1 (same up to names and constants).

    The overlap of the shapes (Jaccard), reduced by up to ``LEVER_WEIGHT`` where the levers differ.
    Symmetric; 1 for equal fingerprints.
    """
    if a.exact == b.exact:
        return 1.0
    return _overlap(a.shape, b.shape) * (1 - LEVER_WEIGHT * (1 - _overlap(a.levers, b.levers)))


def _overlap(a: frozenset[int], b: frozenset[int]) -> float:
    shared = len(a & b)
    union = len(a) + len(b) - shared
    return shared / union if union else 1.0


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _c_tokens(source: str) -> Iterator[_Token]:
    # A continued line is one line to the compiler too; pragmas are often written that way.
    for match in _C_TOKEN.finditer(source.replace("\\\n", " ")):
        kind, text = match.lastgroup, match.group()
        if kind == "directive":
            yield _Token("directive", " ".join(text.replace("#", "# ").split()))
        elif kind != "comment":
            yield _token(kind, text)


def _python_tokens(source: str) -> Iterator[_Token]:
    last = ""
    for match in _PYTHON_TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if kind == "comment":
            continue
        if kind == "block":
            # A docstring is a comment. Any other long string is most likely device code.
            line = source[source.rfind("\n", 0, match.start()) + 1 : match.start()]
            if line.strip() or last in _START:
                yield from _c_tokens(text.lstrip("rRbBfFuU").strip("\"'"))
        else:
            yield _token(kind, text)
        last = text


def _token(kind: str | None, text: str) -> _Token:
    if kind == "name" and text in _KEYWORDS:
        return _Token("keyword", text)
    return _Token(kind or "sign", text)


def _abstract_runs(tokens: list[_Token]) -> Iterator[str]:
    """Each run of ``SHINGLE`` tokens (the whole source when it is shorter), abstracted.

    A name becomes the distance to its previous use, or a bare ``$`` where that is not in the run.
    """
    texts: list[str] = []
    distances: list[int] = []
    last_use: dict[str, int] = {}
    for index, token in enumerate(tokens):
        distance = index - last_use.get(token.text, -SHINGLE) if token.kind == "name" else 0
        if distance:
            last_use[token.text] = index
        distances.append(distance)
        texts.append(f"${distance}" if distance else _abstract(token))
    for start in range(max(1, len(tokens) - SHINGLE + 1)):
        run = slice(start, start + SHINGLE)
        yield " ".join(
            "$" if distance > offset else text
            for offset, (distance, text) in enumerate(zip(distances[run], texts[run], strict=True))
        )


def _abstract(token: _Token) -> str:
    if token.kind == "number":
        return "0"
    if token.kind in {"directive", "string"}:
        return _without_numbers(token.text)
    return token.text


def _without_numbers(text: str) -> str:
    """``text`` with its numbers folded: ``simdlen(8)`` is a parameter, ``simd`` is not."""
    return re.sub(r"\b\d+\b", "0", text)


def _winnow(hashes: list[int]) -> set[int]:
    """The least hash of every window of ``WINDOW`` neighbours."""
    return {min(hashes[i : i + WINDOW]) for i in range(max(1, len(hashes) - WINDOW + 1))}


def _levers(tokens: list[_Token]) -> set[str]:
    """Directives, and names that are called but not defined in this source."""
    directives = {_without_numbers(token.text) for token in tokens if token.kind == "directive"}
    return directives | (_called(tokens) - _defined(tokens))


def _called(tokens: list[_Token]) -> set[str]:
    return {
        token.text
        for token, after in itertools.pairwise(tokens)
        if token.kind == "name" and after.text == "("
    }


def _defined(tokens: list[_Token]) -> set[str]:
    """Names that are declared (``float row(``, ``f = lambda``) or followed by ``(...) {``."""
    names: set[str] = set()
    openings: list[str] = []
    for before, token, after in zip(
        [_EDGE, *tokens[:-1]], tokens, [*tokens[1:], _EDGE], strict=True
    ):
        if token.kind == "name" and (_declares(before) or after.text == "="):
            names.add(token.text)
        elif token.text == "(":
            openings.append(before.text if before.kind == "name" else "")
        elif token.text == ")" and openings:
            name = openings.pop()
            if after.text == "{":
                names.add(name)
    return names


def _declares(before: _Token) -> bool:
    return before.kind == "name" or before.text == ">" or before.text in _DEFINING
