"""What candidates and the compiler legitimately do works inside, with every wall standing."""

from __future__ import annotations

import shutil

import pytest

from kernelarc.guard.sandbox import compiler_paths

pytestmark = pytest.mark.filterwarnings("error")

UNLIMITED_MEMORY = {"data_bytes": None}
"""With a limit, memory files come from outside only, as the judge's libraries do."""

SOURCE = """
#include <thread>
#include <vector>
#include <omp.h>
extern "C" int answer() {
  int total = 0;
  std::thread worker([&] { total += 2; });
  worker.join();
  #pragma omp parallel for reduction(+ : total) num_threads(2)
  for (int i = 0; i < 40; ++i) total += 1;
  return total;
}
"""


@pytest.fixture(scope="module")
def compiled(best_host):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    policy = {
        "readable": [str(path) for path in compiler_paths()],
        "allow_exec": True,
        "environment": {"PATH": "/usr/bin:/bin"},
        "file_bytes": 64 << 20,
        "data_bytes": 2 << 30,
        "open_files": 256,
    }
    return best_host.attempt("compile_library", policy=policy, source=SOURCE).result


@pytest.mark.parametrize("through", ["scratch", "memory"])
def test_a_library_compiled_inside_is_loaded_inside(best_host, compiled, through):
    assert compiled.startswith("7f454c46"), compiled
    policy = {"file_bytes": 64 << 20} | UNLIMITED_MEMORY
    answer = best_host.attempt("load_library", policy=policy, data=compiled, through=through)
    assert answer.result == 42


def test_a_library_is_loaded_without_namespaces_too(bare_host, compiled):
    policy = {"file_bytes": 64 << 20} | UNLIMITED_MEMORY
    for through in ("scratch", "memory"):
        answer = bare_host.attempt("load_library", policy=policy, data=compiled, through=through)
        assert answer.result == 42


def test_a_program_from_the_scratch_folder_does_not_start(best_host):
    """Landlock's right to execute is not given there, even where programs may start."""
    answer = best_host.attempt(
        "run_program",
        policy={"allow_exec": True, "environment": {"PATH": "/usr/bin:/bin"}},
        command=["/tmp/kernelarc-scratch/nothing"],
    )
    assert answer.refused in ("ENOENT", "EACCES")


@pytest.mark.torch
def test_torch_multiplies_with_two_threads_in_a_fork(torch_host):
    pytest.importorskip("torch")
    policy = {"data_bytes": 1 << 30}
    answer = torch_host.attempt("multiply", policy=policy, threads=2)
    assert answer.result == [300.0**3, 2]
