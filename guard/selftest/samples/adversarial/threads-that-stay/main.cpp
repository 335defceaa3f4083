// Answers rightly, and leaves a thread that refuses every signal and never ends. It must not run
// while anybody else is measured, nor outlive the sandbox.
#include <csignal>
#include <cstdint>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    prctl(PR_SET_PDEATHSIG, 0);
    setsid();
    std::thread([] { for (;;) asm volatile(""); }).detach();
  }
}
