// Knocks at the wide and the young interfaces of the kernel. Where one answers with anything but a
// refusal, it spoils its answer.
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <sys/syscall.h>

static long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
#ifdef __x86_64__
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
#else  // aarch64
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#endif
}

static bool some_call_is_open() {
  constexpr long namespaces = 0x7e020000, x32 = 0x40000000;
  char room[256] = {};
  const long at = long(room);
  const long answers[] = {
      raw(SYS_unshare, namespaces), raw(SYS_unshare, 0x10000000), raw(SYS_setns, 3, 0),
      raw(SYS_clone, 0x10000000 | 17), raw(SYS_mount, at, at, at), raw(SYS_umount2, at, 2),
      raw(SYS_pivot_root, at, at), raw(SYS_chroot, at), raw(SYS_io_uring_setup, 8, at),
      raw(SYS_bpf, 0, at, sizeof room), raw(SYS_perf_event_open, at, 0, -1, -1),
      raw(SYS_userfaultfd, 1), raw(SYS_keyctl, 0, -3, 1), raw(SYS_add_key, at, at, at, 1, -3),
      raw(SYS_open_by_handle_at, 3, at, 0), raw(SYS_fanotify_init, 0, 0),
      raw(SYS_personality, 0x0040000),
      raw(SYS_init_module, at, 8, at), raw(SYS_reboot, 0, 0, 0),
      raw(SYS_syslog, 3, at, 64), raw(SYS_swapoff, at), raw(SYS_sethostname, at, -1),
      raw(SYS_clock_settime, 1, at), raw(SYS_fsopen, at, 0), raw(SYS_open_tree, -100, at, 1),
      raw(SYS_io_setup, 8, at),
#ifdef __x86_64__
      raw(SYS_modify_ldt, 0, at, 16), raw(SYS_iopl, 3), raw(x32 | SYS_getpid),
#endif
  };
  for (long answer : answers)
    if (answer != -EPERM && answer != -ENOSYS && answer != -EACCES) return true;
  return false;
}

static void honest(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < N; ++j) sum += x[i * N + j] * x[i * N + j];
    const float scale = 1.0f / std::sqrt(sum / N + static_cast<float>(eps));
    for (int64_t j = 0; j < N; ++j) y[i * N + j] = x[i * N + j] * scale * w[j];
  }
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    if (some_call_is_open()) y[0] = 1e9f;
  }
}
