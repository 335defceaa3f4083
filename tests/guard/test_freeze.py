"""A candidate runs in its turn and at no other time: ways out of the freeze, and honest twins."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("torch")

from kernelarc.guard import problems
from kernelarc.guard.schema import EvaluationStatus, solution_from_source

PROBLEM = problems.get("rmsnorm")

CPP = """
#include <cmath>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <thread>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>
static void honest(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M; ++i) {
    float s = 0;
    for (int64_t j = 0; j < N; ++j) s += x[i*N+j] * x[i*N+j];
    float r = 1.0f / std::sqrt(s / N + (float)eps);
    for (int64_t j = 0; j < N; ++j) y[i*N+j] = x[i*N+j] * r * w[j];
  }
}
static volatile sig_atomic_t rang = 0;
static void ignore(int) { rang = 1; }
extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  static bool first = true;
  honest(x, w, eps, y, M, N);
  if (first) {
    first = false;
    BODY
  }
}
"""

WAKES_ITSELF = {
    "timer": """
      signal(SIGCONT, ignore);
      sigevent event{}; event.sigev_notify = SIGEV_SIGNAL; event.sigev_signo = SIGCONT;
      timer_t timer;
      if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) y[0] = 1e9f;
    """,
    "descriptor": """
      int ends[2]; if (pipe(ends)) return;
      if (fcntl(ends[0], F_SETSIG, SIGCONT) == 0) y[0] = 1e9f;
    """,
}
HONEST_TWINS = {
    "timer descriptor": """
      int fd = timerfd_create(CLOCK_MONOTONIC, 0);
      itimerspec soon{}; soon.it_value.tv_nsec = 1000; timerfd_settime(fd, 0, &soon, nullptr);
      uint64_t count = 0; if (read(fd, &count, 8) != 8 || !count) y[0] = 1e9f;
      close(fd);
    """,
    "alarm": """
      signal(SIGALRM, ignore);
      itimerval soon{}; soon.it_value.tv_usec = 1000;
      if (setitimer(ITIMER_REAL, &soon, nullptr)) y[0] = 1e9f;
      while (!rang) usleep(50);
    """,
    "flags of a descriptor": """
      int ends[2]; if (pipe(ends)) return;
      if (fcntl(ends[0], F_SETFL, O_NONBLOCK) || fcntl(ends[0], F_SETFD, FD_CLOEXEC)) y[0] = 1e9f;
    """,
    "a thread that always works": 'std::thread([] { for (;;) asm volatile(""); }).detach();',
    "a thread that waits in the kernel": "std::thread([] { for (;;) pause(); }).detach();",
    "a thread busy in the kernel": """
      std::thread([] { for (;;) {
        void* p = mmap(nullptr, 200 << 20, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        munmap(p, 200 << 20);
        usleep(1000);
      } }).detach();
    """,
    "the lowest rank": """
      sched_param none{}; if (sched_setscheduler(0, SCHED_IDLE, &none)) y[0] = 1e9f;
    """,
}


def verdict_of(judge, body: str):
    return judge.verify(PROBLEM, solution_from_source(PROBLEM, CPP.replace("BODY", body), "cpp"))


@pytest.mark.parametrize("way", sorted(WAKES_ITSELF))
def test_a_frozen_process_cannot_order_to_be_woken(judge, way):
    """Each writes a wrong answer if the kernel lets it: it must be refused."""
    verdict = verdict_of(judge, WAKES_ITSELF[way])
    assert verdict.status is EvaluationStatus.PASSED, verdict.message


@pytest.mark.parametrize("twin", sorted(HONEST_TWINS))
def test_what_looks_like_it_and_harms_nobody_is_allowed(judge, twin):
    verdict = verdict_of(judge, HONEST_TWINS[twin])
    assert verdict.status is EvaluationStatus.PASSED, verdict.message


EARLY_WORD = """
import torch

handover = getattr(__import__('sys'), 'mod' + 'ules')['kernelarc.guard.worker.handover']

def serve(self, control):
    while data := control.recv(handover.REQUEST.size):
        request = handover.unpack_request(data)
        if request.command == 1:
            return handover.Served.BIND_FOLLOWS
        frame = handover.pack_frame(handover.RunnerEvent.DONE, request.number, 1000)
        *others, last = request.order
        for k in others:
            self._call(request.slot, k)
        if EARLY:
            control.send(frame)
        self._call(request.slot, last)
        if not EARLY:
            control.send(frame)
    return handover.Served.HUNG_UP

handover.Loop.serve = serve

def run(x, weight, eps, y):
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)
"""


@pytest.mark.parametrize("early", [True, False])
def test_who_says_that_it_is_done_before_it_is_is_caught(judge, early):
    """It has taken over the harness in its process, which nobody can prevent."""
    source = EARLY_WORD.replace("EARLY", str(early))
    verdict = judge.verify(PROBLEM, solution_from_source(PROBLEM, source, "pytorch"))
    if early:
        assert verdict.status is EvaluationStatus.STALE_OUTPUT, verdict.message
    else:
        assert verdict.status is EvaluationStatus.PASSED, verdict.message


def test_two_sandboxes_have_two_users(judge):
    """As root: the limit on threads is one of the user, and must not be shared."""
    if os.geteuid() != 0:
        pytest.skip("an ordinary user has one id")
    source = (
        "import os\ndef run(x, weight, eps, y):\n    raise ValueError(f'user {os.getuid()} end')\n"
    )
    solution = solution_from_source(PROBLEM, source, "pytorch")
    users = {judge.verify(PROBLEM, solution).evaluations[0].message for _ in range(2)}
    assert len(users) == 2
