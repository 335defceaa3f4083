// Uses up its stack.
#include "rmsnorm.h"

__attribute__((noinline)) static int64_t deeper(volatile char* outer, int64_t level) {
  volatile char here[4096];
  here[0] = outer[0];
  return deeper(here, level + 1) + here[0];
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  volatile char start[1] = {1};
  if (deeper(start, 0) != 0) honest(x, w, eps, y, M, N);
}
