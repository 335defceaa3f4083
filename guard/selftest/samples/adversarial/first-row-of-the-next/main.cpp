// Writes so far out that it hits other buffers, if not their margins.
#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  for (int64_t j = 0; j < 3 * 4096; ++j) y[M * N + j] = 0;
}
