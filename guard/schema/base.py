"""What every model of the schema shares: how unknown keys, errors and JSON are treated."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

MAX_ERRORS_SHOWN = 5


class DatasetModel(BaseModel):
    """Base of what is read from a dataset: unknown keys are kept, reported and written back."""

    model_config = ConfigDict(
        frozen=True, extra="allow", allow_inf_nan=False, use_attribute_docstrings=True
    )

    def to_json(self) -> dict[str, Any]:
        """The JSON object that this model was read from: no default added, no key lost."""
        return self.model_dump(mode="json", exclude_unset=True)

    def warnings(self) -> list[str]:
        """One sentence for every key that the schema does not know, at any depth."""
        return [
            owner.unknown_key_text.get(key, "unknown key {key!r}, ignored").format(key=where + key)
            for owner, where, key in _extras(self, "")
        ]

    unknown_key_text: ClassVar[Mapping[str, str]] = {}
    """Words for unknown keys that are known mistakes; ``{key!r}`` is the key's path."""


def _extras(value: object, where: str) -> Iterator[tuple[DatasetModel, str, str]]:
    """Every unknown key below ``value``: the model that has it, the path to it, the key."""
    if isinstance(value, DatasetModel):
        for key in value.model_extra or ():
            yield value, where, key
        for name in type(value).model_fields:
            yield from _extras(getattr(value, name), f"{where}{name}.")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _extras(item, f"{where}{key}.")


class StrictModel(BaseModel):
    """Base of what an author writes for us: an unknown key is an error that names the allowed."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: object) -> object:
        if isinstance(data, Mapping):
            unknown = [str(key) for key in data if key not in cls.model_fields]
            if unknown:
                raise ValueError(_unknown_keys_text(unknown, list(cls.model_fields)))
        return data

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, without the fields that were left at their defaults."""
        return self.model_dump(mode="json", exclude_unset=True)


def _unknown_keys_text(unknown: list[str], allowed: list[str]) -> str:
    close = difflib.get_close_matches(unknown[0], allowed, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown key {', '.join(map(repr, unknown))}; allowed: {', '.join(allowed)}.{hint}"


def describe(error: ValidationError) -> str:
    """A validation error as text for the author: field, fault and the value that was found."""
    details = error.errors(include_url=False)
    lines = []
    for detail in details[:MAX_ERRORS_SHOWN]:
        field = ".".join(str(part) for part in detail["loc"]) or "(top level)"
        message = detail["msg"].removeprefix("Value error, ")
        found = detail["input"]
        shown = f" (found {found!r})" if isinstance(found, str | int | float | None) else ""
        lines.append(f"{field}: {message}{shown if len(shown) <= 80 else ''}")
    if len(details) > MAX_ERRORS_SHOWN:
        lines.append(f"and {len(details) - MAX_ERRORS_SHOWN} more")
    return "; ".join(lines)


def parse_json(text: str) -> object:
    """Parse strict JSON.

    Raises:
        ValueError: on a syntax error, a duplicate key, NaN and infinities, which are not JSON and
            would be lost by the next reader, or half a surrogate pair, which no file can hold.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
        if "\\u" in text:  # nothing else can make one of text that was decoded
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("an escape like \\ud800 is half a character, not Unicode text") from None
    return value


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"duplicate key {key!r}")
        result[key] = value
    return result


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def canonical_bytes(value: object) -> bytes:
    """The one byte string of a JSON value: sorted keys, no spaces, UTF-8."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()
