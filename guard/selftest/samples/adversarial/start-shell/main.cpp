// Starts other programs. Where one runs, it spoils its answer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  if (system("true") == 0) y[0] = 1e9f;
  if (FILE* pipe = popen("echo started", "r")) {
    if (std::fgetc(pipe) == 's') y[0] = 1e9f;
    pclose(pipe);
  }
}
