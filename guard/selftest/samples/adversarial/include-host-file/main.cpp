// Includes a file of the host.
#include <cstdint>

#include "rmsnorm.h"
#include "/etc/passwd"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
}
