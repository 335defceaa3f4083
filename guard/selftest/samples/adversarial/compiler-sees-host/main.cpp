// Asks the preprocessor for files that no candidate needs; where one is there, the answer is wrong.
#include <cstdint>

#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
#if __has_include("/etc/passwd") || __has_include("/etc/shadow") || \
      __has_include("/root/.bashrc") || __has_include("/var/lib/dpkg/status")
  y[0] = 1e9f;
#endif
}
