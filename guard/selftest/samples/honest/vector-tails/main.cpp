// Stores eight elements at a time, and of the last ones exactly those that exist.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M; ++i, x += N, y += N) {
    float sum = 0;
    for (int64_t j = 0; j < N; ++j) sum += x[j] * x[j];
    const float scale = 1.0f / std::sqrt(sum / N + static_cast<float>(eps));
    for (int64_t j = 0; j < N; j += 8) {
      float block[8];
      const int64_t count = std::min<int64_t>(8, N - j);
      for (int64_t k = 0; k < count; ++k) block[k] = x[j + k] * scale * w[j + k];
      std::memcpy(y + j, block, count * sizeof *block);
    }
  }
}
