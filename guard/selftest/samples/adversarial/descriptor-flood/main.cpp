// Opens as many descriptors as it gets. With more than 4096 it spoils its answer.
#include <cmath>
#include <cstdint>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

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
  static bool tried = false;
  if (!tried) {
    tried = true;
    std::vector<int> taken;
    for (int fd; taken.size() <= 4096 && (fd = open("/dev/null", O_RDONLY)) >= 0;)
      taken.push_back(fd);
    if (taken.size() > 4096) y[0] = 1e9f;
    for (int fd : taken) close(fd);
  }
}
