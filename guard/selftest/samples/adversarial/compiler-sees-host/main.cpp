// Asks the preprocessor for files that no candidate needs; where one is there, the answer is wrong.
#include <cmath>
#include <cstdint>

static void honest(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < N; ++j) sum += x[i * N + j] * x[i * N + j];
    const float scale = 1.0f / std::sqrt(sum / N + static_cast<float>(eps));
    for (int64_t j = 0; j < N; ++j) y[i * N + j] = x[i * N + j] * scale * w[j];
  }
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
#if __has_include("/etc/passwd") || __has_include("/etc/shadow") || \
      __has_include("/root/.bashrc") || __has_include("/var/lib/dpkg/status")
  y[0] = 1e9f;
#endif
}
