// A tail that is one element too long.
#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  y[M * N] = 0;
}
