// The work is in another file; the constants come from a constexpr table.
#include <cstdint>

#include "row.h"

extern "C" void run(const float *x, const float *weight, double eps, float *y, int64_t M,
                    int64_t N) {
  for (int64_t r = 0; r < M; ++r) normalise<TABLE[1]>(x + r * N, weight, eps, y + r * N, N);
}
