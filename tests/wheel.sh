#!/usr/bin/env bash
# Test what ships: the built wheel in an environment of its own, run from a folder without sources.
set -euo pipefail
bin=$(realpath "$1")
root=$(git rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
"$bin/python" -m build --wheel --outdir "$work/dist" . > "$work/build.log" 2>&1 \
  || { cat "$work/build.log"; exit 1; }
"$bin/python" -m venv "$work/venv"
# The wheel itself, and the dependencies of the environment that was tested already.
"$work/venv/bin/python" -m pip install --quiet --no-deps "$work"/dist/*.whl
"$bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
  > "$work/venv/lib/dependencies.txt"
site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp "$work/venv/lib/dependencies.txt" "$site/zz-dependencies.pth"
cp -r tests "$work/tests"
cp pyproject.toml "$work/"
cd "$work"
origin=$("$work/venv/bin/python" -c 'import kernelarc; print(kernelarc.__file__)')
case "$origin" in
  "$work"/*) echo "testing $origin" ;;
  *) echo "the wheel is not what is imported: $origin"; exit 1 ;;
esac
"$work/venv/bin/python" -m pytest -q -m "not slow" \
  tests/test_installed.py tests/guard/test_promotion.py tests/guard/problems tests/strategies \
  tests/cli
