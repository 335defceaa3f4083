// Forks by the convention of 32-bit programs, where fork has another number. The process is killed
// for it.
#include <cstdint>

#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
#ifdef __x86_64__
  long answer = 2;  // fork
  asm volatile("int $0x80" : "+a"(answer) : : "r8", "r9", "r10", "r11", "memory");
#else
  __builtin_trap();  // No other convention here.
#endif
}
