#!/bin/sh
# Uses every method and every tool through the MCP Inspector's command line, over stdio.
#
#     tests/e2e/inspector.sh [PYTHON [HOME]]
#
# PYTHON is the interpreter of an environment with KernelArc; HOME a folder for its data. Every
# call is a client and a server of its own on the same HOME. Exit status: 0 as expected (or
# skipped, which is said), 1 otherwise. Needs npx and the network.
set -u

python=${1:-python3}
inspector="@modelcontextprotocol/inspector@2.12.0"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
home=${2:-$out/home}
failed=0

skip() {
    echo "SKIPPED: MCP Inspector: $1"
    exit 0
}

# The Inspector needs Node 22; npx brings its own.
inspect() {
    npx --yes --package=node@22 --package="$inspector" -- mcp-inspector --cli "$@"
}

# use NAME EXIT_STATUS OPTION...: one client's whole life; its answer is in $out/NAME.
use() {
    name=$1
    expected=$2
    shift 2
    inspect "$python" -m kernelarc.cli stdio --home "$home" --isolation none \
        --format json --quiet "$@" >"$out/$name" 2>"$out/$name.log"
    status=$?
    if [ $status -eq "$expected" ]; then
        echo "ok      $name"
    else
        failed=1
        echo "FAILED  $name: exit status $status, expected $expected"
        tail -n 20 "$out/$name" "$out/$name.log"
    fi
}

# tool NAME EXIT_STATUS TOOL JSON
tool() {
    use "$1" "$2" --method tools/call --tool-name "$3" --tool-args-json "$4"
}

# holds NAME EXPRESSION: whether a Python expression about that answer is true. The answer is
# `result`; of a tool's call, `content` is the structured content.
holds() {
    "$python" - "$out/$1" "$2" <<'PYTHON' || failed=1
import json
import sys

with open(sys.argv[1]) as file:
    text = file.read()
try:
    answer = json.loads(text)
    result = answer.get("result", answer)
    content = result.get("structuredContent") or {}
    fine = eval(sys.argv[2])
except (ValueError, LookupError, AttributeError, TypeError) as error:
    fine = False
    print(f"        {error!r}")
if not fine:
    print(f"FAILED  not so: {sys.argv[2]}\n{text[:3000]}")
    sys.exit(1)
PYTHON
}

# field NAME KEY: a field of a call's structured content.
field() {
    "$python" -c 'import json, sys
content = json.load(open(sys.argv[1])).get("result", {}).get("structuredContent") or {}
print(content.get(sys.argv[2], ""))' "$out/$1" "$2" 2>/dev/null
}

# ended NAME: asks for a job's result until it has ended, each time as a new client.
ended() {
    for poll in 1 2 3 4 5 6; do
        case $(field "$1" state) in
        queued | running) ;;
        *) break ;;
        esac
        tool "$1" 0 get_result "{\"job_id\": \"$(field "$1" job_id)\"}"
    done
}

# submission SUFFIX: the arguments of compile_and_verify for a kernel whose last factor is that.
submission() {
    "$python" - "$1" <<'PYTHON'
import json
import sys

kernel = """#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, const float* weight, double eps, float* y, int64_t M, int64_t N) {
  #pragma omp parallel for
  for (int64_t i = 0; i < M; ++i) {
    float sum = 0;
    #pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < N; ++j) sum += x[i * N + j] * x[i * N + j];
    const float scale = 1.0f / std::sqrt(sum / N + static_cast<float>(eps));
    for (int64_t j = 0; j < N; ++j) y[i * N + j] = x[i * N + j] * scale FACTOR;
  }
}
"""
source = kernel.replace("FACTOR", sys.argv[1])
print(json.dumps({"problem": "rmsnorm", "language": "cpp", "strategy": "vectorise", "source": source}))
PYTHON
}

command -v npx >/dev/null || skip "npx is not installed"
inspect --version >"$out/version" 2>"$out/npx.log" || skip "$inspector cannot be fetched"
"$python" -c 'import torch, kernelarc' || { echo "FAILED  $python has no KernelArc"; exit 1; }

use tools 0 --method tools/list --strict
holds tools 'len(result["tools"]) == 9'
holds tools 'all(t["description"] and t["inputSchema"] and t["outputSchema"] for t in result["tools"])'
use tools-modern 0 --method tools/list --protocol-era modern
holds tools-modern 'len(result["tools"]) == 9'
use prompts 0 --method prompts/list
holds prompts '"optimize-kernel" in [prompt["name"] for prompt in result["prompts"]]'
use prompt 0 --method prompts/get --prompt-name optimize-kernel \
    --prompt-args problem=rmsnorm strategy=vectorise
holds prompt '"compile_and_verify" in result["messages"][0]["content"]["text"]'
use templates 0 --method resources/templates/list
holds templates 'len(result["resourceTemplates"]) == 6'
use resources 0 --method resources/list
holds resources 'result["resources"] == []'

tool list_problems 0 list_problems '{}'
holds list_problems '"rmsnorm" in [line["problem"] for line in content["problems"]]'
tool get_problem 0 get_problem '{"problem": "rmsnorm"}'
holds get_problem '"extern" in content["cpp_signature"]'
tool unknown 5 get_problem '{"problem": "no_such_problem"}'
holds unknown 'result["isError"] and "list_problems" in result["content"][0]["text"]'

tool wrong 0 compile_and_verify "$(submission '')"
ended wrong
holds wrong 'content["verdict"] == "INCORRECT_NUMERICAL"'
tool right 0 compile_and_verify "$(submission '* weight[j]')"
ended right
holds right 'content["verdict"] == "PASSED"'
solution=$(field right solution_id)
tool timed 0 benchmark "{\"solution_id\": \"$solution\"}"
ended timed
holds timed 'content["verdict"] in ("PROMOTED", "BACKUP", "TIE", "INCONCLUSIVE")'

tool withdrawn 0 benchmark "{\"solution_id\": \"$solution\", \"force\": true, \"wait_s\": 0}"
job=$(field withdrawn job_id)
tool cancel_job 0 cancel_job "{\"job_id\": \"$job\"}"
holds cancel_job 'content["state"] == "cancelled"'
tool get_result 0 get_result "{\"job_id\": \"$job\"}"
holds get_result 'content["verdict"] == "CANCELLED"'

evidence=$(field right evidence)
tool post_insight 0 post_insight "{\"problem\": \"rmsnorm\", \"kind\": \"success\",
    \"strategy\": \"vectorise\", \"text\": \"Two passes are correct on all shapes.\",
    \"evidence\": [\"$evidence\"]}"
holds post_insight 'content["posted"] and content["verified"]'
tool read_board 0 read_board '{"problem": "rmsnorm"}'
holds read_board 'content["shown"] == 1'
tool get_leader 0 get_leader '{"problem": "rmsnorm", "history": true}'
holds get_leader 'content["problem"] == "rmsnorm"'

for uri in problems/rmsnorm problems/rmsnorm/board "solutions/$solution" "jobs/$job/log" \
    agents/me/attempts/rmsnorm; do
    use read 0 --method resources/read --uri "kernelarc://$uri"
    holds read 'result["contents"][0]["text"]'
done

[ $failed -eq 0 ] && echo "PASSED: every method and every tool"
exit $failed
