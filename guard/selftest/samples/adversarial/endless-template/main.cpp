// Instantiates a template without an end.
#include <cstdint>

#include "rmsnorm.h"

template <long level>
struct Deeper {
  static constexpr long value = Deeper<level + 1>::value + Deeper<level + 2>::value;
};

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  y[0] += Deeper<0>::value;
}
