// Keeps a megabyte on the stack.
#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  volatile float scratch[1 << 18];
  for (int64_t j = 0; j < 1 << 18; j += 1024) scratch[j] = 0;
  honest(x, w, eps, y, M, N);
}
