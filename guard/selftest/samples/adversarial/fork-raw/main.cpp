// Asks the kernel for another process in every way that it knows. Where it gets one, it spoils its
// answer.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <sys/syscall.h>

#include "raw_syscall.h"
#include "rmsnorm.h"

static bool another_process() {
  uint64_t request[8] = {0, 0, 0, 0, SIGCHLD, 0, 0, 0};  // struct clone_args: only an exit signal
#ifdef SYS_fork
  const long oldest = raw(SYS_fork);
#else
  const long oldest = -1;  // This machine never had it.
#endif
  const long answers[] = {oldest, raw(SYS_clone, SIGCHLD),
                          raw(SYS_clone3, long(request), sizeof request)};
  bool any = false;
  for (long answer : answers) {
    if (answer == 0)
      for (;;) raw(SYS_sched_yield);
    any |= answer > 0;
  }
  return any;
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    if (another_process()) y[0] = 1e9f;
  }
}
