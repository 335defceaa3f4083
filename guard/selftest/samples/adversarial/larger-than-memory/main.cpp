// Its data segment is a terabyte long.
#include <cstdint>

#include "rmsnorm.h"
asm(".bss\n.globl filled\nfilled: .zero 0x10000000000\n.text");
extern "C" __attribute__((visibility("hidden"))) float filled[];

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  if (M < 0) y[0] = filled[M];
}
