"""One Markdown file with YAML front matter as a validated model.

A playbook is one strategy: front matter and then the sections "What to try", "Pitfalls" and
"How to verify". A guide goes deep into one subject; its body is free.
"""

from __future__ import annotations

import re
from importlib.resources.abc import Traversable
from typing import Annotated, Literal, TypeVar

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
)

from kernelarc.guard.errors import KernelArcError
from kernelarc.guard.schema.solution import Language

Device = Literal["cpu", "gpu"]
Category = Literal[
    "attention",
    "convolution",
    "data-movement",
    "elementwise",
    "loss",
    "matmul",
    "normalisation",
    "reduction",
    "selection",
    "softmax",
]
"""Kinds of operations that playbooks speak about."""
Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=40)]
Line = Annotated[str, StringConstraints(pattern=r"^[^\n]+$", max_length=300)]

SECTIONS = ("What to try", "Pitfalls", "How to verify")
"""The sections of a playbook's body, in this order."""

_FRONT_MATTER = re.compile(r"\A---\n(?P<front>.*?\n)---\n(?P<body>.*)\Z", re.DOTALL)


class CatalogueError(KernelArcError):
    """A playbook or guide is malformed; the text names the file and the field."""


class Page(BaseModel):
    """What playbooks and guides share. Frozen; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    id: Id
    """The file's name without its suffix."""
    title: Line
    summary: Line
    """What it is about, in one line."""
    devices: tuple[Device, ...] = Field(min_length=1)
    body: str = Field(min_length=1)
    """Markdown."""


class AppliesTo(BaseModel):
    """When a strategy makes sense."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    categories: tuple[Category | Literal["any"], ...] = Field(min_length=1)
    """Kinds of operations; ``any`` for all."""
    when: Line
    """What must be true of the problem or of its profile, in words."""


class Strategy(Page):
    """One playbook: an angle of attack."""

    rank: Literal[1, 2, 3]
    """1: often the largest lever, try early; 3: polish, or for special cases."""
    applies_to: AppliesTo
    languages: tuple[Language | Literal["any"], ...] = Field(min_length=1)
    """Languages in which it can be expressed; ``any`` for all."""
    conflicts: tuple[Id, ...] = ()
    """Strategies that work against this one: combine them only with a measurement."""
    predicted_gain: Line
    """What to expect where the defect that it cures is present, in words."""

    @field_validator("body")
    @classmethod
    def _has_the_sections(cls, body: str) -> str:
        found = re.findall(r"^## (.+)$", body, re.MULTILINE)
        if found != list(SECTIONS):
            raise ValueError(f"the sections are {found}; they must be {list(SECTIONS)}")
        return body

    def fits(self, category: Category | None, device: Device, language: Language | None) -> bool:
        """Whether it applies; ``None`` for the category or the language means any."""
        return (
            device in self.devices
            and (category is None or not {category, "any"}.isdisjoint(self.applies_to.categories))
            and (language is None or not {language, "any"}.isdisjoint(self.languages))
        )


class Guide(Page):
    """One deep guide."""


PageT = TypeVar("PageT", bound=Page)


def read_pages(folder: Traversable, model: type[PageT]) -> dict[str, PageT]:
    """Every ``*.md`` of ``folder`` by id, sorted by id.

    Raises:
        CatalogueError: The folder is missing, or a file does not satisfy ``model``.
    """
    if not folder.is_dir():
        raise CatalogueError(f"{folder} is missing: reinstall the package with its data files.")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".md"))
    pages = (_read(folder / name, name, model) for name in names)
    return {page.id: page for page in pages}


def _read(file: Traversable, name: str, model: type[PageT]) -> PageT:
    match = _FRONT_MATTER.match(file.read_text(encoding="utf-8"))
    if match is None:
        raise CatalogueError(f"{name}: it must begin with YAML between two lines of '---'.")
    try:
        front = yaml.safe_load(match["front"])
    except yaml.YAMLError as error:
        raise CatalogueError(f"{name}: its front matter is not YAML: {error}") from error
    if not isinstance(front, dict):
        raise CatalogueError(f"{name}: its front matter must be a mapping of fields.")
    if front.get("id") != name.removesuffix(".md"):
        raise CatalogueError(f"{name}: its id is {front.get('id')!r}; it must be the file's name.")
    try:
        return model.model_validate({**front, "body": match["body"].strip() + "\n"})
    except ValidationError as error:
        complaints = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'file'}: {item['msg']}"
            for item in error.errors(include_url=False)
        )
        raise CatalogueError(f"{name}: {complaints}.") from error
