// Its data segment is a terabyte long.
#include <cmath>
#include <cstdint>
asm(".bss\n.globl filled\nfilled: .zero 0x10000000000\n.text");
extern "C" __attribute__((visibility("hidden"))) float filled[];

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
  if (M < 0) y[0] = filled[M];
}
