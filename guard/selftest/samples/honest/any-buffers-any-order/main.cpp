// Notes the buffers of every call as well, and needs none of them but its own.
#include <set>

#include "rmsnorm.h"

static std::set<const float*> seen;

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  seen.insert(y);
  honest(x, w, eps, y, M, N);
}
