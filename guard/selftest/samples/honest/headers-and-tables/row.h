#pragma once
#include <cmath>
#include <cstdint>

constexpr int TABLE[] = {2, 4, 8};

template <int WIDTH>
void normalise(const float *in, const float *weight, double eps, float *out, int64_t N) {
  double sums[WIDTH] = {};
  for (int64_t i = 0; i < N; ++i) sums[i % WIDTH] += double(in[i]) * in[i];
  double sum = 0;
  for (double part : sums) sum += part;
  const double scale = 1 / std::sqrt(sum / N + eps);
  for (int64_t i = 0; i < N; ++i) out[i] = float(in[i] * scale * weight[i]);
}
