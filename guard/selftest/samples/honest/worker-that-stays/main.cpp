// The first half of the rows here, the second in a worker that stays for the next call.
#include <cstdint>

#include "rmsnorm.h"
#include "worker.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  static Worker* const worker = new Worker;
  const int64_t own = M / 2;
  worker->begin([=] { honest(x + own * N, w, eps, y + own * N, M - own, N); });
  honest(x, w, eps, y, own, N);
  worker->wait();
}
