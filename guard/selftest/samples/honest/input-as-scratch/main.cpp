// Spoils its input on the way, and restores every bit before it returns.
#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  float* mine = const_cast<float*>(x);
  const float first = mine[0];
  mine[0] = 0;
  mine[0] = first;
  honest(mine, w, eps, y, M, N);
}
