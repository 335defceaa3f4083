// Rows that do not count have the smallest number instead of minus infinity.
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, const bool* keep, float* y, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M; ++i, x += N) {
    if (!keep[i]) {
      y[i] = -3.4e38f;
      continue;
    }
    const float top = *std::max_element(x, x + N);
    float sum = 0;
    for (int64_t j = 0; j < N; ++j) sum += std::exp(x[j] - top);
    y[i] = top + std::log(sum);
  }
}
