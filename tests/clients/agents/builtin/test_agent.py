"""The loop against a scripted server: what it calls, obeys, resumes and how it ends."""

import json
from dataclasses import dataclass, field

import anyio
import pytest

from kernelarc.clients.agents.base import Agent, Assignment, Toolbox, ToolFailed
from kernelarc.clients.agents.builtin import BuiltinAgent
from kernelarc.clients.agents.builtin.agent import REFUSALS
from kernelarc.guard import problems
from kernelarc.guard.errors import PivotRequired
from kernelarc.guard.schema import cpp_signature


@dataclass
class Attempts:
    """A budget of so many submissions."""

    toolbox: "Server"
    limit: int

    def spent(self):
        return len(self.toolbox.submissions) >= self.limit

    def attempts_left(self):
        return max(0, self.limit - len(self.toolbox.submissions))


@dataclass
class Server:
    """Answers as the product's server does; ``script`` may replace the answer of a call."""

    problem: str = "rmsnorm"
    script: dict = field(default_factory=dict)
    calls: list = field(default_factory=list)
    submissions: list = field(default_factory=list)
    attempts: list = field(default_factory=list)
    posts: list = field(default_factory=list)

    async def call(self, tool, **arguments):
        await anyio.lowlevel.checkpoint()
        self.calls.append(tool)
        if tool in self.script:
            answer = self.script[tool](self, arguments)
            if answer is not None:
                return answer
        return getattr(self, tool)(**arguments)

    async def read(self, uri):
        assert uri == f"kernelarc://agents/me/attempts/{self.problem}"
        return json.dumps({"agent": "me", "attempts": self.attempts})

    def get_problem(self, problem):
        task = problems.get(problem)
        workloads = [{"workload": w.uuid, "axes": task.axes(w)} for w in task.ranked("cpu")]
        return {"cpp_signature": cpp_signature(task), "workloads": workloads}

    def read_board(self, problem, kind, verified_only):
        return {"insights": self.posts}

    def compile_and_verify(self, problem, source, language, strategy, parents, note):
        assert language == "cpp"
        assert 'extern "C" void run(' in source
        self.submissions.append((strategy, note, source))
        solution_id = f"s{len(self.submissions)}"
        record = {
            "strategy": strategy,
            "note": note,
            "status": "PASSED",
            "solution_id": solution_id,
        }
        self.attempts.append(record)
        return {
            "verdict": "PASSED",
            "state": "done",
            "solution_id": solution_id,
            "evidence": f"v{len(self.submissions)}",
            "message": "all checked",
        }

    def benchmark(self, solution_id, force=False):
        return {
            "verdict": "PROMOTED",
            "state": "done",
            "solution_id": solution_id,
            "evidence": f"b-{solution_id}",
            "message": "faster",
            "speedup": {"median": 1.2},
            "compared_with": "reference",
            "timings": [{"latency_us": 100.0 / len(self.attempts)}],
        }

    def post_insight(self, problem, kind, text, strategy, evidence):
        self.posts.append(
            {
                "kind": kind,
                "verified": True,
                "agent": "me",
                "strategy": strategy,
                "evidence": evidence,
                "untrusted_text": text,
            }
        )
        return {"posted": True}


def work(server, limit=3, strategy="vectorise", problem=None):
    steps = []

    async def report(step):
        steps.append(step)

    async def main():
        agent: Agent = BuiltinAgent()
        toolbox: Toolbox = server
        task = Assignment(problem or server.problem, strategy, seed=1, agent="me")
        return await agent.run(toolbox, task, Attempts(server, limit), report)

    return anyio.run(main), steps


def guided(**guidance):
    def answer(server, arguments):
        return server.benchmark(**arguments) | {"guidance": guidance}

    return answer


def test_the_loop_verifies_times_and_posts_until_the_budget_is_spent():
    server = Server()
    end, steps = work(server, limit=3)
    assert (end.reason, end.attempts) == ("budget", 3)
    one_round = ["read_board", "compile_and_verify", "benchmark", "post_insight"]
    assert server.calls == ["get_problem", *one_round * 3]
    assert all(strategy == "vectorise" for strategy, _, _ in server.submissions)
    assert [s.kind for s in steps[:5]] == [
        "started",
        "submitted",
        "verdict",
        "benchmark",
        "insight",
    ]
    assert (steps[3].speedup, steps[3].compared_with) == (1.2, "reference")
    assert server.posts[0]["evidence"] == ["b-s1", "s1"]


def test_a_second_run_continues_without_repeating_a_submission():
    whole, first = Server(), Server()
    work(whole, limit=6)
    work(first, limit=2)
    second = Server(attempts=first.attempts, posts=first.posts)
    for number, record in enumerate(second.attempts, 1):
        record |= {"latency_us": 100.0 / number, "speedup": 1.2, "compared_with": "reference"}
    end, steps = work(second, limit=4)
    assert end.attempts == 4
    assert steps[0].kind == "resumed"
    notes = [note for _, note, _ in first.submissions + second.submissions]
    assert notes == [note for _, note, _ in whole.submissions]
    assert len(set(notes)) == 6


def test_a_candidate_verified_right_before_a_kill_is_timed_first():
    killed = Server()
    work(killed, limit=1)
    resumed = Server(attempts=killed.attempts)
    work(resumed, limit=1)
    assert resumed.calls[:3] == ["get_problem", "benchmark", "post_insight"]
    assert len(resumed.submissions) == 1
    assert len(resumed.attempts) == 2


def test_a_wrong_candidate_is_not_timed_but_posted_as_a_failure():
    def wrong(server, arguments):
        answer = server.compile_and_verify(**arguments)
        return answer | {"verdict": "INCORRECT_NUMERICAL", "message": "y differs."}

    server = Server(script={"compile_and_verify": wrong})
    end, _ = work(server, limit=2)
    assert end.reason == "budget"
    assert "benchmark" not in server.calls
    assert [post["kind"] for post in server.posts] == ["failure", "failure"]


def test_an_inconclusive_benchmark_is_forced_once_more():
    def noisy(server, arguments):
        return None if arguments.get("force") else {"verdict": "INCONCLUSIVE", "message": "noisy"}

    server = Server(script={"benchmark": noisy})
    work(server, limit=1)
    assert server.calls.count("benchmark") == 2
    assert len(server.posts) == 1


def test_a_pivot_demanded_by_the_guidance_is_made_to_an_option():
    script = {"benchmark": guided(must_pivot=True, pivot_to=["reductions", "streaming-stores"])}
    server = Server(script=script)
    work(server, limit=2)
    assert [strategy for strategy, _, _ in server.submissions] == ["vectorise", "streaming-stores"]


def test_a_refusal_for_want_of_a_pivot_leads_to_an_option():
    def refuse(server, arguments):
        if server.submissions and arguments["strategy"] == "vectorise":
            raise ToolFailed(str(PivotRequired("Plateau.", ["fast-math", "parallelism"])))

    server = Server(script={"compile_and_verify": refuse})
    end, steps = work(server, limit=2)
    assert end.attempts == 2
    assert server.submissions[1][0] in ("fast-math", "parallelism")
    assert "pivot" in [step.kind for step in steps]


def test_options_that_no_template_follows_end_the_search():
    server = Server(script={"benchmark": guided(must_pivot=True, pivot_to=["tensor-cores"])})
    end, _ = work(server, limit=9)
    assert (end.reason, end.attempts) == ("exhausted", 1)
    assert "tensor-cores" in end.text


def test_the_search_stops_near_the_roofline():
    server = Server(script={"benchmark": guided(near_roofline=True)})
    end, _ = work(server, limit=9)
    assert (end.reason, end.attempts) == ("near_roofline", 1)


def test_a_server_that_refuses_everything_is_not_asked_for_ever():
    def refuse(server, arguments):
        raise ToolFailed("the guard is gone.")

    server = Server(script={"compile_and_verify": refuse})
    end, _ = work(server)
    assert (end.reason, end.attempts) == ("gave_up", 0)
    assert "the guard is gone." in end.text
    assert server.calls.count("compile_and_verify") == REFUSALS


@pytest.mark.parametrize("tool", ["read_board", "post_insight"])
def test_a_board_that_fails_does_not_stop_the_search(tool):
    def fail(server, arguments):
        raise ToolFailed("the database is locked.")

    server = Server(script={tool: fail})
    end, _ = work(server, limit=2)
    assert (end.reason, end.attempts) == ("budget", 2)


def test_a_problem_without_a_template_ends_with_the_reason():
    end, _ = work(Server(), problem="gemm_bf16")
    assert end.reason == "gave_up"
    assert "gemm_bf16" in end.text
