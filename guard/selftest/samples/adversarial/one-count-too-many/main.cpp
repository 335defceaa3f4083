// Off by one in one row: far within any relative tolerance of the sum.
#include <algorithm>
#include <cstdint>

extern "C" void run(const float* x, bool* above, int64_t* count, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M; ++i, x += N, above += N) {
    const float half = *std::max_element(x, x + N) / 2;
    count[i] = 0;
    for (int64_t j = 0; j < N; ++j) count[i] += above[j] = x[j] > half;
    if (i == M / 2) ++count[i];
  }
}
