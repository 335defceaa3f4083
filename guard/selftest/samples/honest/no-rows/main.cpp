// There may be nothing to do.
#include <cstdint>

extern "C" void run(const float* x, float* y, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M * N; ++i) y[i] = 2 * x[i];
}
