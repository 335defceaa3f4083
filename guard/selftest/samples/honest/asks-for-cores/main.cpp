// One thread for each processor that it may use, all joined before the return.
#include <cstdint>
#include <thread>
#include <vector>

#include "rmsnorm.h"

extern "C" void run(const float *x, const float *weight, double eps, float *y, int64_t M,
                    int64_t N) {
  const int64_t count = std::thread::hardware_concurrency() > 1 ? 2 : 1;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < count; ++t)
    threads.emplace_back([=] {
      for (int64_t r = t; r < M; r += count) honest(x + r * N, weight, eps, y + r * N, 1, N);
    });
  for (std::thread &thread : threads) thread.join();
}
