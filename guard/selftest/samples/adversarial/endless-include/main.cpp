// Includes a file without an end.
#include <cstdint>

#include "rmsnorm.h"
#define DEVICE(name) </dev/name>
#include DEVICE(zero)

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
}
