// A temporary for every row and a large one for all of them.
#include <cstdint>
#include <vector>

#include "rmsnorm.h"

extern "C" void run(const float *x, const float *weight, double eps, float *y, int64_t M,
                    int64_t N) {
  std::vector<float> all(M * N);
  for (int64_t r = 0; r < M; ++r) {
    std::vector<float> own(N);
    honest(x + r * N, weight, eps, own.data(), 1, N);
    for (int64_t i = 0; i < N; ++i) all[r * N + i] = own[i];
  }
  for (int64_t i = 0; i < M * N; ++i) y[i] = all[i];
}
