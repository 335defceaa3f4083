"""Plants a library in the caches of Triton, Inductor, CUDA and extension builds.

A second run that finds it refuses to load, so passing twice means that no cache is shared.
"""

import os
from pathlib import Path

from rmsnorm import honest

NAMES = (
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "CUDA_CACHE_PATH",
    "XDG_CACHE_HOME",
)
for name in NAMES:
    folder = Path(os.environ.get(name, Path.home() / ".cache")) / "planted"
    if folder.exists():
        raise RuntimeError(f"{name} still holds what an earlier run planted")
    try:
        folder.mkdir(parents=True)
        (folder / "kernel.so").write_bytes(b"\x7fELF planted")
    except OSError:
        continue


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
