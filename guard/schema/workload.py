"""``workload.jsonl``: the sizes at which a problem is run, in SOL-ExecBench's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, model_validator

from kernelarc.guard.schema.base import DatasetModel
from kernelarc.guard.schema.definition import AxisSize


class RandomInput(DatasetModel):
    """Drawn by the guard."""

    type: Literal["random"]


class ScalarInput(DatasetModel):
    """A Python number that is part of the workload."""

    type: Literal["scalar"]
    value: StrictBool | StrictInt | StrictFloat


class SafetensorsInput(DatasetModel):
    """One tensor of a file that comes with the dataset."""

    type: Literal["safetensors"]
    path: str
    tensor_key: str


class CustomInput(DatasetModel):
    """Made by the definition's ``custom_inputs_entrypoint``."""

    type: Literal["custom"]


InputSpec = Annotated[
    RandomInput | ScalarInput | SafetensorsInput | CustomInput, Field(discriminator="type")
]


class ToleranceSpec(DatasetModel):
    """SOL-ExecBench's: an element matches if |error| <= max_atol + max_rtol |expected|."""

    max_atol: float = Field(default=1e-2, ge=0)
    max_rtol: float = Field(default=1e-2, ge=0)
    required_matched_ratio: float = Field(default=0.99, ge=0, le=1)
    """Least fraction of elements that must match."""
    max_error_cap: float | None = Field(default=None, ge=0)
    """Largest absolute error of any element."""
    allow_negative_inf: bool = False
    """Whether -inf is right where -inf is expected."""

    unknown_key_text: ClassVar[Mapping[str, str]] = {
        "required_match_ratio": (
            "{key!r} is a misspelling of 'required_matched_ratio' in the dataset; it is ignored, "
            "as SOL-ExecBench does, and the default ratio 0.99 applies"
        )
    }


class Workload(DatasetModel):
    """Concrete axis values, the source of every input, and the tolerance."""

    axes: dict[str, AxisSize]
    """Values of the definition's ``var`` axes."""
    inputs: dict[str, InputSpec]
    uuid: str = Field(min_length=1)
    tolerance: ToleranceSpec = ToleranceSpec()

    @property
    def is_custom(self) -> bool:
        """Whether the reference's own function makes the inputs."""
        return any(isinstance(spec, CustomInput) for spec in self.inputs.values())

    @property
    def scalars(self) -> dict[str, bool | int | float]:
        """The scalar inputs by name."""
        specs = self.inputs.items()
        return {name: spec.value for name, spec in specs if isinstance(spec, ScalarInput)}

    @model_validator(mode="after")
    def _custom_is_all_or_nothing(self) -> Self:
        plain = [name for name, spec in self.inputs.items() if not isinstance(spec, CustomInput)]
        if self.is_custom and plain:
            raise ValueError(
                f"inputs: custom inputs are all or nothing, but {plain} are of another type"
            )
        return self
