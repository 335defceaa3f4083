"""The C++ in the guides compiles and computes what the text claims."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelarc.strategies.catalogue import load

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

HARNESS = """
extern "C" void exponentials(const float* x, float* y) { store(y, exp_v(load(x))); }
extern "C" void product(const float* a, const float* b, float* c, int64_t lda, int64_t ldc,
                        int64_t k) {
    tile<6>(a, lda, b, c, ldc, k);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    blocks = re.findall(r"```cpp\n(.*?)```", load().guide("cpu-simd").body, re.DOTALL)
    vectors, row_sum, tile, exponential = blocks
    source = "\n".join(
        [
            "#include <cstdint>",
            vectors,
            tile,
            exponential,
            f'extern "C" float row_sum(const float* x, int64_t n) {{ {row_sum} return sum; }}',
            HARNESS,
        ]
    )
    folder: Path = tmp_path_factory.mktemp("guide")
    (folder / "main.cpp").write_text(source, encoding="utf-8")
    command = ["g++", "-O3", "-march=native", "-std=c++20", "-Wno-psabi", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(folder / "main.so"), str(folder / "main.cpp")], check=True)
    return ctypes.CDLL(str(folder / "main.so"))


def floats(values) -> ctypes.Array:
    values = list(values)
    return (ctypes.c_float * len(values))(*values)


@pytest.mark.parametrize("length", [1, 7, 31, 32, 33, 97])
def test_the_row_sum_is_right_for_every_length(library, length):
    library.row_sum.restype = ctypes.c_float
    values = floats(0.25 * (i % 9) - 1 for i in range(length))
    expected = sum(value * value for value in values)
    assert library.row_sum(values, ctypes.c_int64(length)) == pytest.approx(expected, rel=1e-6)


def test_the_exponential_has_the_accuracy_that_is_claimed(library):
    worst = 0.0
    for start in range(-8000, 8000, 8):
        x = floats((start + i) * 0.01083 for i in range(8))
        y = floats([0] * 8)
        library.exponentials(x, y)
        for argument, result in zip(x, y, strict=True):
            worst = max(worst, abs(result / math.exp(argument) - 1))
    assert worst < 3e-7


def test_the_register_tile_adds_a_product_to_the_output(library):
    rows, width, k = 6, 16, 5
    a = floats(i % 7 - 3 for i in range(rows * k))
    b = floats(i % 5 - 2 for i in range(k * width))
    c = floats([1] * (rows * width))
    library.product(a, b, c, ctypes.c_int64(k), ctypes.c_int64(width), ctypes.c_int64(k))
    for r in range(rows):
        for j in range(width):
            expected = 1 + sum(a[r * k + p] * b[p * width + j] for p in range(k))
            assert c[r * width + j] == expected
