"""The signatures shown to authors compile, and have the arguments that the guard passes."""

import ast
import shutil
import subprocess
from typing import Any

import pytest

from kernelarc.guard import problems
from kernelarc.guard.schema import Problem, cpp_signature, python_signature


def test_cpp_arguments_are_inputs_outputs_and_every_axis(problem: Problem) -> None:
    assert cpp_signature(problem) == (
        "#include <cstdint>\n"
        "\n"
        'extern "C" void run(\n'
        "    const float* x  /* [M, N] */,\n"
        "    const uint16_t* weight  /* [N], raw bits of bfloat16 */,\n"
        "    double eps,\n"
        "    float* y  /* [M, H, 2] */,\n"
        "    int64_t M,\n"
        "    int64_t H  /* N / 2 */,\n"
        "    int64_t N  /* always 8 */);\n"
    )


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_every_cpp_signature_compiles(problem: Problem) -> None:
    found = [problem, *(problems.get(name) for name in problems.names())]
    text = "\n".join(
        f"namespace n{i} {{\n{cpp_signature(p)}\n}}".replace('extern "C" ', "")
        for i, p in enumerate(found)
    )
    text = "#include <cstdint>\n" + text.replace("#include <cstdint>\n", "")
    command = ["g++", "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", "-x", "c++", "-"]
    result = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr


def test_names_that_cpp_does_not_allow_are_changed(
    definition: dict[str, Any], workload: dict[str, Any]
) -> None:
    definition["outputs"] = {
        name: {"shape": ["M"], "dtype": "int8"} for name in ("float", "2d", "a-b", "a.b")
    }
    made = Problem.model_validate({"definition": definition, "workloads": [workload]})
    lines = [line for line in cpp_signature(made).splitlines() if "int8_t*" in line]
    assert [line.split()[1] for line in lines] == ["float_", "_2d", "a_b", "a_b_"]


@pytest.mark.parametrize("destination_passing_style", [True, False])
def test_python_signatures_parse_and_take_the_right_arguments(
    problem: Problem, destination_passing_style: bool
) -> None:
    for each in (problem, *(problems.get(name) for name in problems.names())):
        text = python_signature(each, destination_passing_style=destination_passing_style)
        run = ast.parse(text).body[-1]
        assert isinstance(run, ast.FunctionDef)
        expected = list(each.definition.inputs)
        if destination_passing_style:
            expected += each.definition.outputs
        assert [argument.arg for argument in run.args.args] == expected


def test_a_python_signature_shows_shapes_and_dtypes(problem: Problem) -> None:
    text = python_signature(problem)
    assert "    x: torch.Tensor,  # [M, N] float32\n" in text
    assert "    eps: float,\n" in text
    assert "write the result into y" in text
