// Starts from the bias and adds one tap in each pass, from the last step to the first.
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, const float* weight, const float* bias, float* y, int64_t B,
                    int64_t T, int64_t C, int64_t W) {
  for (int64_t i = 0; i < B * T; ++i)
    for (int64_t c = 0; c < C; ++c) y[i * C + c] = bias[c];
  for (int64_t tap = 0; tap < W; ++tap)
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = T - 1; t >= W - 1 - tap; --t)
        for (int64_t c = 0; c < C; ++c)
          y[(b * T + t) * C + c] += weight[c * W + tap] * x[(b * T + t - W + 1 + tap) * C + c];
  for (int64_t i = 0; i < B * T * C; ++i) y[i] /= 1 + std::exp(-y[i]);
}
