// Asks the kernel whom it may signal: number 0 is checked like any other and does no harm. Where it
// may signal anybody but itself, it spoils its answer.
#include <cstdint>
#include <sys/syscall.h>

#include "raw_syscall.h"
#include "rmsnorm.h"

static bool may_signal_someone() {
  const long own = raw(SYS_getpid);
  if (raw(SYS_kill, -1, 0) == 0 || raw(SYS_kill, raw(SYS_getppid), 0) == 0) return true;
  for (long process = 1; process < 70000; ++process)  // Its own threads answer to the second.
    if (raw(SYS_kill, process, 0) == 0 && raw(SYS_tgkill, own, process, 0) != 0) return true;
  return false;
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    if (may_signal_someone()) y[0] = 1e9f;
  }
}
