// Includes a file of the host by a name that only the preprocessor knows.
#include <cstdint>

#include "rmsnorm.h"
#define IN_ETC(name) </etc/name>
#include IN_ETC(passwd)

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
}
