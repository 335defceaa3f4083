// A temporary for every row and a large one for all of them.
#include <cmath>
#include <cstdint>
#include <vector>

static void row(const float *in, const float *weight, double eps, float *out, int64_t N) {
  double sum = 0;
  for (int64_t i = 0; i < N; ++i) sum += double(in[i]) * in[i];
  const double scale = 1 / std::sqrt(sum / N + eps);
  for (int64_t i = 0; i < N; ++i) out[i] = float(in[i] * scale * weight[i]);
}

extern "C" void run(const float *x, const float *weight, double eps, float *y, int64_t M,
                    int64_t N) {
  std::vector<float> all(M * N);
  for (int64_t r = 0; r < M; ++r) {
    std::vector<float> own(N);
    row(x + r * N, weight, eps, own.data(), N);
    for (int64_t i = 0; i < N; ++i) all[r * N + i] = own[i];
  }
  for (int64_t i = 0; i < M * N; ++i) y[i] = all[i];
}
