// Right but for three elements that are no numbers.
#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  y[0] = y[M * N / 2] = y[M * N - 1] = NAN;
}
