// Normalises every row by its root mean square; sums in double, rows shared by the threads.
#include <cmath>
#include <cstdint>

extern "C" void run(const float *x, const float *weight, double eps, float *y, int64_t M,
                    int64_t N) {
#pragma omp parallel for
  for (int64_t row = 0; row < M; ++row) {
    const float *in = x + row * N;
    float *out = y + row * N;
    double sum = 0;
    for (int64_t i = 0; i < N; ++i) sum += double(in[i]) * in[i];
    const double scale = 1 / std::sqrt(sum / N + eps);
    for (int64_t i = 0; i < N; ++i) out[i] = float(in[i] * scale * weight[i]);
  }
}
