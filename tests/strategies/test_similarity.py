"""Similarity of candidates: what counts as the same code, and what does not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelarc.strategies.similarity import (
    LEVER_WEIGHT,
    Fingerprint,
    fingerprint,
    similarity,
)

NEAR = 0.95

ROW_NORM = """
#include <cmath>
#include <cstdint>
#include <vector>

static float mean_square(const float* row, int64_t n) {
    float total = 0.0f;
    for (int64_t j = 0; j < n; ++j) total += row[j] * row[j];
    return total / n;
}

extern "C" void run(const float* x, const float* w, float* y, int64_t rows, int64_t cols) {
    constexpr int BLOCK = 8;
    for (int64_t first = 0; first < rows; first += BLOCK) {
        const int64_t last = first + BLOCK < rows ? first + BLOCK : rows;
        for (int64_t i = first; i < last; ++i) {
            const float scale = 1.0f / std::sqrt(mean_square(x + i * cols, cols) + 1e-6f);
            for (int64_t j = 0; j < cols; ++j) y[i * cols + j] = x[i * cols + j] * scale * w[j];
        }
    }
}
"""

ROW_NORM_VECTOR = """
#include <cmath>
#include <cstdint>

typedef float v8 __attribute__((vector_size(32)));

static inline v8 load(const float* p) {
    v8 v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

extern "C" void run(const float* x, const float* w, float* y, int64_t rows, int64_t cols) {
    const int64_t body = cols / 32 * 32;
    for (int64_t i = 0; i < rows; ++i) {
        const float* in = x + i * cols;
        float* out = y + i * cols;
        v8 a0 = {}, a1 = {}, a2 = {}, a3 = {};
        for (int64_t j = 0; j < body; j += 32) {
            const v8 p = load(in + j), q = load(in + j + 8);
            const v8 r = load(in + j + 16), s = load(in + j + 24);
            a0 += p * p; a1 += q * q; a2 += r * r; a3 += s * s;
        }
        const v8 a = (a0 + a1) + (a2 + a3);
        float sum = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
        for (int64_t j = body; j < cols; ++j) sum += in[j] * in[j];
        const float scale = 1.0f / sqrtf(sum / cols + 1e-6f);
        for (int64_t j = 0; j < cols; ++j) out[j] = in[j] * scale * w[j];
    }
}
"""

MATMUL = """
#include <cstdint>

extern "C" void run(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float total = 0;
            for (int64_t p = 0; p < k; ++p) total += a[i * k + p] * b[j * k + p];
            c[i * n + j] = total;
        }
}
"""

MATMUL_TILED = """
#include <algorithm>
#include <cstdint>

constexpr int64_t TI = 32, TJ = 64, TP = 128;

extern "C" void run(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    std::fill(c, c + m * n, 0.0f);
    for (int64_t p0 = 0; p0 < k; p0 += TP)
        for (int64_t i0 = 0; i0 < m; i0 += TI)
            for (int64_t j0 = 0; j0 < n; j0 += TJ) {
                const int64_t p1 = std::min(p0 + TP, k), i1 = std::min(i0 + TI, m);
                const int64_t j1 = std::min(j0 + TJ, n);
                for (int64_t i = i0; i < i1; ++i)
                    for (int64_t j = j0; j < j1; ++j) {
                        float total = c[i * n + j];
                        for (int64_t p = p0; p < p1; ++p) total += a[i * k + p] * b[j * k + p];
                        c[i * n + j] = total;
                    }
            }
}
"""

TRITON = '''
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    """Scale one row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0)
    total = tl.sum(value * value, axis=0)
    tl.store(y + row * n + at, value * tl.rsqrt(total / n + 1e-6), mask=at < n)


def run(x, y):
    kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024, num_warps=4)
'''


def cpp(source: str) -> Fingerprint:
    return fingerprint({"main.cpp": source})


def alike(a: str, b: str) -> float:
    return similarity(cpp(a), cpp(b))


def test_formatting_and_comments_change_nothing():
    dense = "\n".join(line.strip() for line in ROW_NORM.splitlines() if line.strip())
    commented = "/* a banner\n * of two lines */\n" + dense.replace(";\n", "; // as before\n")
    assert cpp(commented) == cpp(ROW_NORM)


@pytest.mark.parametrize(
    ("old", "new"),
    [("BLOCK = 8", "BLOCK = 64"), ("1e-6f", "1.0e-6f"), ("BLOCK", "TILE"), ("mean_square", "ms")],
)
def test_a_changed_constant_or_name_is_a_near_duplicate(old, new):
    changed = ROW_NORM.replace(old, new)
    assert changed != ROW_NORM
    assert alike(ROW_NORM, changed) >= NEAR
    assert cpp(ROW_NORM).exact != cpp(changed).exact


def test_renaming_everything_is_a_near_duplicate():
    changed = ROW_NORM
    for old, new in [("rows", "R"), ("cols", "C"), ("first", "lo"), ("last", "hi"), ("scale", "s")]:
        changed = changed.replace(old, new)
    assert alike(ROW_NORM, changed) >= NEAR


@pytest.mark.parametrize(
    ("a", "b"),
    [(ROW_NORM, ROW_NORM_VECTOR), (MATMUL, MATMUL_TILED), (ROW_NORM, MATMUL)],
)
def test_honest_different_implementations_are_far_apart(a, b):
    assert alike(a, b) < 0.6


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (ROW_NORM, "    for (int64_t first = 0"),
        (MATMUL_TILED, "        for (int64_t i0 = 0"),
    ],
)
def test_one_pragma_is_a_different_approach(source, line):
    threaded = source.replace(line, f"#pragma omp parallel for\n{line}")
    assert 0.5 < alike(source, threaded) < NEAR


def test_a_number_in_a_pragma_is_a_parameter():
    eight, sixteen = (
        MATMUL.replace(
            "            for (int64_t p",
            f"#pragma omp simd simdlen({n})\n            for (int64_t p",
        )
        for n in (8, 16)
    )
    assert alike(eight, sixteen) >= NEAR
    assert alike(eight, MATMUL) < NEAR


def test_another_library_call_is_a_lever():
    other = ROW_NORM.replace("std::sqrt", "std::my_fast_root")
    assert cpp(other).shape == cpp(ROW_NORM).shape
    lost = 1 - alike(ROW_NORM, other)
    assert lost == pytest.approx(LEVER_WEIGHT)


def test_helpers_of_the_source_are_no_levers():
    fast = ROW_NORM.replace("mean_square", "another_name")
    assert cpp(fast).levers == cpp(ROW_NORM).levers


def test_the_name_of_a_file_changes_nothing():
    assert fingerprint({"main.cpp": MATMUL}) == fingerprint({"other/place.cc": MATMUL})


def test_the_order_of_files_changes_nothing():
    one = {"a.cpp": MATMUL, "b.cpp": ROW_NORM}
    assert fingerprint(one) == fingerprint(dict(reversed(one.items())))


def test_python_docstrings_and_comments_change_nothing():
    changed = TRITON.replace('"""Scale one row."""', '"""Other\n    words."""  # and a comment')
    assert fingerprint({"main.py": changed}) == fingerprint({"main.py": TRITON})


def test_a_tuned_launch_is_a_near_duplicate_in_python():
    tuned = TRITON.replace("BLOCK=1024, num_warps=4", "BLOCK=2048, num_warps=8")
    assert similarity(fingerprint({"m.py": TRITON}), fingerprint({"m.py": tuned})) >= NEAR


def test_device_code_inside_a_python_string_is_compared_as_code():
    wrap = 'SOURCE = r"""{}"""\n\ndef run(x, y):\n    launch(SOURCE, x, y)\n'
    one, other, tuned = (
        fingerprint({"main.py": wrap.format(code)})
        for code in (MATMUL, MATMUL_TILED, MATMUL_TILED.replace("TI = 32", "TI = 48"))
    )
    assert similarity(one, other) < 0.6
    assert similarity(other, tuned) >= NEAR


def test_empty_sources_equal_each_other_and_nothing_else():
    empty = fingerprint({"main.cpp": "// nothing"})
    assert similarity(empty, fingerprint({})) == 1
    assert similarity(empty, cpp(MATMUL)) == 0


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "//////////////////////////////8="])
def test_damaged_encodings_are_refused(text):
    with pytest.raises(ValueError, match=r"fingerprint|base64|padding"):
        Fingerprint.decode(text)


@pytest.mark.parametrize("unit", ['"\\', "'\\", "/*", '"""', "'''", "(", "r'", "#pragma ", "0e+"])
@pytest.mark.parametrize("name", ["main.cpp", "main.py"])
def test_hostile_text_costs_no_more_than_linear_time(unit, name):
    def cost(repeats: int) -> float:
        began = time.process_time()
        fingerprint({name: unit * repeats})
        return time.process_time() - began

    def least(repeats: int) -> float:
        """Of three: a collection of the whole suite's garbage may fall into one of them."""
        return min(cost(repeats) for _ in range(3))

    cost(100)
    assert least(16_000) < 16 * 6 * least(1_000) + 0.05


tokens = st.sampled_from(
    ["for", "(", ")", "{", "}", "x", "y1", "f", "+", "=", ";", "0", "17", "1e-3f", "\n", "// c\n"]
)
sources = st.lists(tokens, max_size=120).map(" ".join)


@given(sources, sources)
def test_similarity_is_symmetric_and_within_zero_and_one(a, b):
    value = alike(a, b)
    assert 0 <= value <= 1
    assert value == alike(b, a)


@given(sources)
def test_a_source_equals_itself_and_its_encoding(source):
    value = cpp(source)
    assert similarity(value, value) == 1
    assert Fingerprint.decode(value.encode()) == value
    assert hash(Fingerprint.decode(value.encode())) == hash(value)


@given(sources)
def test_all_constants_at_once_may_change(source):
    changed = source.replace("17", "4711").replace("1e-3f", "2.5f")
    assert alike(source, changed) == 1


@given(st.text(max_size=300), st.sampled_from(["a.py", "a.cpp", "a"]))
@settings(max_examples=200)
def test_any_text_has_a_fingerprint(text, name):
    value = fingerprint({name: text})
    assert Fingerprint.decode(value.encode()) == value


def test_the_fingerprint_of_a_long_source_is_small():
    """A comparison is one intersection of so many hashes, hence cheap."""
    functions = "\n".join(f"int f{i}() {{ return g{i}(h, {i}) + {i}; }}" for i in range(60))
    source = ROW_NORM + ROW_NORM_VECTOR + MATMUL + MATMUL_TILED + TRITON + functions
    assert source.count("\n") > 150
    assert len(cpp(source).shape) < 600
    assert len(cpp(source).encode()) < 7_000
