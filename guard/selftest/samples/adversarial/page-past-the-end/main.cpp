// A row too many, further out than a stray vector store.
#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  y[M * N + 1000] = 0;
}
