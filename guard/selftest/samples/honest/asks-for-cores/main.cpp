// One thread for each processor that it may use, all joined before the return.
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

static void row(const float *in, const float *weight, double eps, float *out, int64_t N) {
  double sum = 0;
  for (int64_t i = 0; i < N; ++i) sum += double(in[i]) * in[i];
  const double scale = 1 / std::sqrt(sum / N + eps);
  for (int64_t i = 0; i < N; ++i) out[i] = float(in[i] * scale * weight[i]);
}

extern "C" void run(const float *x, const float *weight, double eps, float *y, int64_t M,
                    int64_t N) {
  const int64_t count = std::thread::hardware_concurrency() > 1 ? 2 : 1;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < count; ++t)
    threads.emplace_back([=] {
      for (int64_t r = t; r < M; r += count) row(x + r * N, weight, eps, y + r * N, N);
    });
  for (std::thread &thread : threads) thread.join();
}
