// Chooses among two variants by trying both, in the first call of each shape only.
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "rmsnorm.h"

using Variant = void (*)(const float*, const float*, double, float*, int64_t, int64_t);

static void by_threads(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
#pragma omp parallel for
  for (int64_t i = 0; i < M; ++i) honest(x + i * N, w, eps, y + i * N, 1, N);
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  using Clock = std::chrono::steady_clock;
  static std::map<std::pair<int64_t, int64_t>, Variant> chosen;
  Variant& best = chosen[{M, N}];
  if (best == nullptr) {
    Clock::duration least = Clock::duration::max();
    for (const Variant variant : {honest, by_threads})
      for (int round = 0; round < 20; ++round) {
        const auto start = Clock::now();
        variant(x, w, eps, y, M, N);
        if (const auto took = Clock::now() - start; took < least) least = took, best = variant;
      }
  }
  best(x, w, eps, y, M, N);
}
