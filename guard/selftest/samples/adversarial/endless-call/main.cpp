// Never returns; the time of a call is limited, and the next candidate gets a new process.
#include <cstdint>

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  for (;;) asm volatile("");
}
