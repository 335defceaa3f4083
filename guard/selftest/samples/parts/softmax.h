// The right answer of the built-in problem, for rows [0, M).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

static void softmax(const float* x, float* y, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M; ++i, x += N, y += N) {
    const float highest = *std::max_element(x, x + N);
    double sum = 0;
    for (int64_t j = 0; j < N; ++j) sum += y[j] = std::exp(x[j] - highest);
    for (int64_t j = 0; j < N; ++j) y[j] /= sum;
  }
}
