// Instantiates 2^40 templates.
#include <cstdint>

#include "rmsnorm.h"

template <int depth, long path>
struct Bomb {
  static constexpr long value =
      Bomb<depth - 1, 2 * path>::value + Bomb<depth - 1, 2 * path + 1>::value;
};
template <long path>
struct Bomb<0, path> {
  static constexpr long value = path & 1;
};

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  y[0] += Bomb<40, 0>::value;
}
