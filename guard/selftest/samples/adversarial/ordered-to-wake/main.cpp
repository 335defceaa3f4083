// Orders a signal that would end the judge's freeze, in every way that it knows. Where the kernel
// takes the order, it spoils its answer.
#include <csignal>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw_syscall.h"
#include "rmsnorm.h"

static bool ordered() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  int timer = 0, ends[2];
  if (pipe(ends)) return false;
  const bool any = raw(SYS_timer_create, CLOCK_MONOTONIC, long(&event), long(&timer)) == 0 ||
                   raw(SYS_mq_notify, ends[0], long(&event)) == 0 ||
                   raw(SYS_fcntl, ends[0], 10 /* F_SETSIG */, SIGCONT) == 0;
  close(ends[0]);
  close(ends[1]);
  return any;
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    if (ordered()) y[0] = 1e9f;
  }
}
