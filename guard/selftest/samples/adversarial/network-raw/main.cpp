// Asks for sockets of all families by bare system calls. Where it gets one that reaches beyond
// its own process, it spoils its answer.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <sys/socket.h>
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

static bool any_socket() {
  for (long family = 0; family < 64; ++family)
    for (long kind : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_PACKET}) {
      if (family == AF_UNIX && kind != SOCK_DGRAM) continue;  // Connected to nobody; see below.
      if (raw(SYS_socket, family, kind) >= 0) return true;
    }
  const sockaddr abstract{AF_UNIX, "\0judge"};
  const long stream = raw(SYS_socket, AF_UNIX, SOCK_STREAM);
  constexpr long refused = -111;  // ECONNREFUSED
  return stream >= 0 && raw(SYS_connect, stream, long(&abstract), sizeof abstract) != refused;
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
    if (any_socket()) y[0] = 1e9f;
  }
}
