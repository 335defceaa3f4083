#!/bin/sh
# Runs the MCP conformance suite against the real server, for both protocol eras.
#
#     tests/conformance/run.sh [PYTHON]
#
# Exit status: 0 as expected (or skipped, which is said), 1 otherwise. Needs npx and the network.
set -u

here=$(cd "$(dirname "$0")" && pwd)
python=${1:-python3}
port=${CONFORMANCE_PORT:-18734}
suite="@modelcontextprotocol/conformance@0.2.0-alpha.12"
out=$(mktemp -d)

skip() {
    echo "SKIPPED: conformance suite: $1"
    exit 0
}

# The suite needs Node 22; npx brings its own.
conformance() {
    npx --yes --package=node@22 --package="$suite" -- conformance "$@"
}

command -v npx >/dev/null || skip "npx is not installed"
conformance --help >/dev/null 2>"$out/npx.log" || skip "$suite cannot be fetched"

"$python" "$here/server.py" "$port" 2>"$out/server.log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$out"' EXIT

tries=0
until "$python" -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 60 ] || ! kill -0 $server 2>/dev/null; then
        echo "FAILED: the server did not start"
        cat "$out/server.log"
        exit 1
    fi
    sleep 1
done

status=0
for version in 2025-11-25 2026-07-28; do
    echo "== protocol $version"
    conformance server --url "http://127.0.0.1:$port/mcp" --spec-version "$version" \
        --expected-failures "$here/expected-$version.yml" -o "$out/$version" || status=1
done
[ $status -eq 0 ] && echo "PASSED: both eras as expected"
exit $status
