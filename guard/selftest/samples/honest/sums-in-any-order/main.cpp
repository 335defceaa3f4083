// Two outputs. The threads add their rows to dw in the order in which they come to it, so that two
// runs differ in the last bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void run(const float* dy, const float* x, const float* w, double eps, float* dx,
                    float* dw, int64_t M, int64_t N) {
  std::fill_n(dw, N, 0.0f);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < M; ++i) {
    const float *row = x + i * N, *gradient = dy + i * N;
    double squares = 0, along = 0;
    for (int64_t j = 0; j < N; ++j) squares += double(row[j]) * row[j];
    const double scale = 1 / std::sqrt(squares / N + eps);
    for (int64_t j = 0; j < N; ++j) along += double(gradient[j]) * w[j] * row[j] * scale;
    for (int64_t j = 0; j < N; ++j) {
      const double normed = row[j] * scale;
      dx[i * N + j] = (double(gradient[j]) * w[j] - normed * along / N) * scale;
#pragma omp atomic
      dw[j] += float(gradient[j] * normed);
    }
  }
}
