// Asks for sockets of all families by bare system calls. Where it gets one that reaches beyond
// its own process, it spoils its answer.
#include <cstdint>
#include <initializer_list>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "raw_syscall.h"
#include "rmsnorm.h"

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

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    if (any_socket()) y[0] = 1e9f;
  }
}
