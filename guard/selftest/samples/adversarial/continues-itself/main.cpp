// A thread withdraws every stop before it takes effect. The judge may stop it in spite of that, or
// refuse it; it must not go on unnoticed.
#include <csignal>
#include <cstdint>
#include <sys/syscall.h>
#include <thread>

#include "raw_syscall.h"
#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    const long own = raw(SYS_getpid);
    std::thread([own] { for (;;) raw(SYS_kill, own, SIGCONT); }).detach();
  }
}
