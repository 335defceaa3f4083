// Attaches to its parent and to the first process. Where it may, it spoils its answer.
#include <cstdint>
#include <sys/ptrace.h>
#include <unistd.h>

#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  if (ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr) == 0) y[0] = 1e9f;
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) y[0] = 1e9f;
}
