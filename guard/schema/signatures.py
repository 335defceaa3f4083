"""The exact function that an author must write, as text for C++ and for Python."""

from __future__ import annotations

from kernelarc.guard.schema.definition import AxisConst, AxisExpr, DType, TensorSpec
from kernelarc.guard.schema.problem import Problem

CPP_TYPES: dict[DType, str] = {
    DType.FLOAT64: "double",
    DType.FLOAT32: "float",
    DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t",
    DType.FLOAT8_E4M3FN: "uint8_t",
    DType.FLOAT8_E5M2: "uint8_t",
    DType.FLOAT4_E2M1: "uint8_t",
    DType.FLOAT4_E2M1FN_X2: "uint8_t",
    DType.INT64: "int64_t",
    DType.INT32: "int32_t",
    DType.INT16: "int16_t",
    DType.INT8: "int8_t",
    DType.BOOL: "uint8_t",
}
"""C++ type of an element; for the small floats it is their raw bits."""

_CPP_KEYWORDS = """
    alignas alignof and asm auto bool break case catch char class compl concept const consteval
    constexpr constinit continue co_await co_return co_yield decltype default delete do double
    else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not nullptr operator or private protected public register requires
    return short signed sizeof static struct switch template this throw true try typedef
    typeid typename union unsigned using virtual void volatile while xor
"""


def cpp_signature(problem: Problem) -> str:
    """The ``extern "C"`` function of a ``cpp`` solution: inputs, outputs, then every axis.

    Tensors are contiguous and row-major; only the order of the arguments binds, not their names.
    """
    definition = problem.definition
    used: set[str] = set()
    lines = []
    for name, spec in definition.inputs.items():
        if spec.shape is None:
            lines.append(f"{_cpp_scalar(spec.dtype)} {_cpp_name(name, used)}")
        else:
            pointer = f"const {CPP_TYPES[spec.dtype]}* {_cpp_name(name, used)}"
            lines.append(f"{pointer}{_cpp_note(spec)}")
    for name, spec in definition.outputs.items():
        pointer = f"{CPP_TYPES[spec.dtype]}* {_cpp_name(name, used)}"
        lines.append(f"{pointer}{_cpp_note(spec)}")
    for name, axis in definition.axes.items():
        note = ""
        if isinstance(axis, AxisConst):
            note = f"  /* always {axis.value} */"
        elif isinstance(axis, AxisExpr):
            note = f"  /* {axis.expression} */"
        lines.append(f"int64_t {_cpp_name(name, used)}{note}")
    arguments = ",\n".join(f"    {line}" for line in lines)
    return f'#include <cstdint>\n\nextern "C" void run(\n{arguments});\n'


def python_signature(problem: Problem, *, destination_passing_style: bool = True) -> str:
    """The ``run`` function of a Python solution, with shapes and dtypes.

    Args:
        problem: what is to be solved.
        destination_passing_style: whether it writes into its outputs or returns them.
    """
    definition = problem.definition
    parameters = [f"    {name}{_python_note(spec)}" for name, spec in definition.inputs.items()]
    outputs = [f"    {name}{_python_note(spec)}" for name, spec in definition.outputs.items()]
    if destination_passing_style:
        parameters += outputs
        result, body = "None", "    ...  # write the result into " + ", ".join(definition.outputs)
    else:
        single = len(outputs) == 1
        result = "torch.Tensor" if single else "tuple[torch.Tensor, ...]"
        body = "    return " + ", ".join(definition.outputs)
        body += "\n" + "\n".join(f"    # {line.strip()}" for line in outputs)
    lines = "\n".join(parameters)
    return f"import torch\n\n\ndef run(\n{lines}\n) -> {result}:\n{body}\n"


def _python_note(spec: TensorSpec) -> str:
    if spec.shape is None:
        kind = "bool" if spec.dtype is DType.BOOL else "float" if spec.dtype.is_float else "int"
        return f": {kind},"
    return f": torch.Tensor,  # [{', '.join(spec.shape)}] {spec.dtype}"


def _cpp_scalar(dtype: DType) -> str:
    return "double" if dtype.is_float else "int64_t"


def _cpp_note(spec: TensorSpec) -> str:
    raw = f", raw bits of {spec.dtype}" if spec.dtype.is_float and spec.dtype.bits < 32 else ""
    return f"  /* [{', '.join(spec.shape or ())}]{raw} */"


def _cpp_name(name: str, used: set[str]) -> str:
    """A C++ identifier near ``name`` that no earlier argument has."""
    cleaned = "".join(char if char.isascii() and char.isalnum() else "_" for char in name)
    if cleaned[0].isdigit() or cleaned in _CPP_KEYWORDS.split():
        cleaned = f"{cleaned}_" if not cleaned[0].isdigit() else f"_{cleaned}"
    while cleaned in used:
        cleaned += "_"
    used.add(cleaned)
    return cleaned
