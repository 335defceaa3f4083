// Asks for a library of 8 GB.
#include <cstdint>

#include "rmsnorm.h"
asm(".data\nfilled: .fill 0x80000000, 4, 1\n.text");
static float table[1] = {1};

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  y[0] += table[M] * 0.0f;
}
