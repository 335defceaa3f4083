"""A client of another generation: version 1 of the SDK, in an environment of its own.

It knows nothing of KernelArc but what the server says. It calls everything that there is once and
prints one JSON object with what came back; ``test_foreign_clients.py`` judges that::

    python foreign_client.py COMMAND [ARGUMENT ...]
"""

import json
import sys
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import McpError
from mcp.types import CallToolResult, PromptReference, ResourceTemplateReference
from pydantic import AnyUrl

PROBLEM = "rmsnorm"
STRATEGY = "vectorise"
CALL_TIMEOUT = timedelta(seconds=60)
"""What the strictest clients allow a call."""
MAX_POLLS = 6
MAX_BENCHMARKS = 2

KERNEL = """\
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, const float* weight, double eps, float* y, int64_t M, int64_t N) {
  #pragma omp parallel for
  for (int64_t i = 0; i < M; ++i) {
    float sum = 0;
    #pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < N; ++j) sum += x[i * N + j] * x[i * N + j];
    const float scale = 1.0f / std::sqrt(sum / N + static_cast<float>(eps));
    for (int64_t j = 0; j < N; ++j) y[i * N + j] = x[i * N + j] * scale * weight[j];
  }
}
"""  # noqa: E501
RIGHT = KERNEL
ALSO_RIGHT = KERNEL.replace("#pragma omp parallel for", "#pragma omp parallel for schedule(static)")
WITHOUT_WEIGHT = KERNEL.replace(" * weight[j]", "")
NO_CPP = KERNEL.replace("float sum = 0;", "float sum = ;")


class Recorder:
    """Calls, and keeps what came back and which progress was reported meanwhile."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.calls: list[dict[str, Any]] = []

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of one call; the SDK checks it against the output schema."""
        progress: list[dict[str, Any]] = []

        async def noted(value: float, total: float | None, message: str | None) -> None:
            progress.append({"progress": value, "total": total, "message": message})

        begun = anyio.current_time()
        result = await self.session.call_tool(
            tool, arguments, read_timeout_seconds=CALL_TIMEOUT, progress_callback=noted
        )
        self.calls.append(
            {
                "tool": tool,
                "arguments": arguments,
                "is_error": result.isError,
                "structured": result.structuredContent,
                "text": _text(result),
                "progress": progress,
                "elapsed_s": anyio.current_time() - begun,
            }
        )
        return result.structuredContent or {}

    async def finished(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The result that a job ends with; asks as often as its answers say."""
        for _ in range(MAX_POLLS):
            if answer.get("state") not in ("queued", "running"):
                break
            answer = await self.call("get_result", job_id=answer["job_id"])
        return answer


async def every_tool(recorder: Recorder) -> dict[str, str]:
    """Calls every tool; returns the ids that the resources are read with."""
    call, finished = recorder.call, recorder.finished
    await call("list_problems")
    await call("get_problem", problem=PROBLEM)
    await call("get_problem", problem="no_such_problem")
    cpp = {"problem": PROBLEM, "language": "cpp", "strategy": STRATEGY}
    await finished(await call("compile_and_verify", **cpp, source=NO_CPP))
    await finished(await call("compile_and_verify", **cpp, source=WITHOUT_WEIGHT))

    # In one call where the machine allows it; then without waiting, by way of the job.
    right = await finished(await call("compile_and_verify", **cpp, source=RIGHT, note="one pass"))
    await call("compile_and_verify", **cpp, source=RIGHT)
    job = await call("compile_and_verify", **cpp, source=ALSO_RIGHT, wait_s=0)
    await finished(await call("get_result", job_id=job["job_id"]))

    for attempt in range(MAX_BENCHMARKS):
        timed = await finished(
            await call("benchmark", solution_id=right["solution_id"], force=attempt > 0)
        )
        if timed.get("verdict") != "INCONCLUSIVE":
            break
    withdrawn = await call("benchmark", solution_id=job["solution_id"], wait_s=0)
    await call("cancel_job", job_id=withdrawn["job_id"])
    await call("get_result", job_id=withdrawn["job_id"])

    await call(
        "post_insight",
        problem=PROBLEM,
        kind="success",
        strategy=STRATEGY,
        text="One pass for the sum and one for the result passes on all shapes.",
        evidence=[timed.get("evidence", right["evidence"]), right["evidence"]],
    )
    await call("read_board", problem=PROBLEM, query="pass")
    await call("get_leader", problem=PROBLEM, history=True)
    return {"solution": right["solution_id"], "job": job["job_id"]}


async def resources(session: ClientSession, ids: dict[str, str]) -> dict[str, Any]:
    """Reads one resource of every template, and one that does not exist."""
    listed = await session.list_resource_templates()
    read = {}
    for template in listed.resourceTemplates:
        uri = template.uriTemplate.replace("{name}", PROBLEM).replace("{problem}", PROBLEM)
        uri = uri.replace("{id}", ids["job"] if "/jobs/" in uri else ids["solution"])
        read[template.uriTemplate] = await _read(session, uri)
    unknown = "kernelarc://problems/no_such_problem"
    return {"read": read, "unknown": await _read(session, unknown)}


async def _read(session: ClientSession, uri: str) -> dict[str, Any]:
    try:
        result = await session.read_resource(AnyUrl(uri))
    except McpError as error:
        return {"uri": uri, "error": error.error.message, "code": error.error.code}
    (content,) = result.contents
    return {
        "uri": str(content.uri),
        "mime_type": content.mimeType,
        "text": getattr(content, "text", None),
    }


async def prompts(session: ClientSession) -> dict[str, Any]:
    """All prompts, each rendered for the problem."""
    listed = (await session.list_prompts()).prompts
    rendered = {}
    for prompt in listed:
        result = await session.get_prompt(prompt.name, {"problem": PROBLEM})
        rendered[prompt.name] = [
            getattr(message.content, "text", None) for message in result.messages
        ]
    return {"listed": [prompt.model_dump(mode="json") for prompt in listed], "rendered": rendered}


async def completions(session: ClientSession) -> dict[str, list[str]]:
    """Completions of names as a user types them."""
    prompt = PromptReference(type="ref/prompt", name="optimize-kernel")
    template = ResourceTemplateReference(type="ref/resource", uri="kernelarc://problems/{name}")

    async def names(ref: Any, name: str, value: str) -> list[str]:
        return (await session.complete(ref, {"name": name, "value": value})).completion.values

    return {
        "problem": await names(prompt, "problem", "rms"),
        "strategy": await names(prompt, "strategy", ""),
        "template": await names(template, "name", "soft"),
        "foreign": await names(prompt, "no_such_argument", ""),
    }


async def main(command: str, *arguments: str) -> dict[str, Any]:
    """Everything once; what came back."""
    server = StdioServerParameters(command=command, args=list(arguments))
    async with (
        stdio_client(server, errlog=sys.stderr) as (read, write),
        ClientSession(read, write) as session,
    ):
        hello = await session.initialize()
        await session.send_ping()
        tools = (await session.list_tools()).tools
        recorder = Recorder(session)
        ids = await every_tool(recorder)
        return {
            "sdk": version("mcp"),
            "hello": hello.model_dump(mode="json", exclude_none=True),
            "tools": [tool.model_dump(mode="json", exclude_none=True) for tool in tools],
            "calls": recorder.calls,
            "resources": await resources(session, ids),
            "prompts": await prompts(session),
            "completions": await completions(session),
        }


def _text(result: CallToolResult) -> str:
    return "\n".join(getattr(block, "text", "") for block in result.content)


if __name__ == "__main__":
    record = anyio.run(main, *sys.argv[1:])
    sys.stdout.write(json.dumps(record))
