// Ordinary system calls of ordinary libraries; a refusal leaves the answer wrong.
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "rmsnorm.h"

extern "C" void run(const float *x, const float *weight, double eps, float *y, int64_t M,
                    int64_t N) {
  timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0 || sched_getcpu() < 0) return;
  const size_t size = M * N * sizeof(float) + sysconf(_SC_PAGESIZE);
  void *own = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return;
  madvise(own, size, MADV_HUGEPAGE);
  float *copy = static_cast<float *>(own);
  for (int64_t r = 0; r < M; ++r) honest(x + r * N, weight, eps, copy + r * N, 1, N);
  for (int64_t i = 0; i < M * N; ++i) y[i] = copy[i];
  munmap(own, size);
}
