// Embeds a file of the host through the assembler.
#include <cstdint>

#include "rmsnorm.h"
asm(".data\n.incbin \"/etc/passwd\"\n.text");

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
}
