// Tries to read other processes without any function of the C library. Where the kernel lets it,
// it spoils its answer.
#include <cstdint>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "raw_syscall.h"
#include "rmsnorm.h"

static bool any_process_is_open() {
  constexpr long attach = 16, seize = 0x4206;
  const long own = raw(SYS_getpid);
  char byte = 0;
  iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
  for (long process = 1; process < 70000; ++process) {
    if (process == own) continue;
    if (process > 64 && process % 97) continue;
    if (raw(SYS_process_vm_readv, process, long(&here), 1, long(&there), 1) >= 0) return true;
    if (raw(SYS_ptrace, attach, process) >= 0 || raw(SYS_ptrace, seize, process) >= 0) return true;
    if (raw(SYS_pidfd_open, process) >= 0) return true;
  }
  return false;
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    if (any_process_is_open()) y[0] = 1e9f;
  }
}
