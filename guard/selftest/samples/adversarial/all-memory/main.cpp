// Takes memory until it is refused; the uncaught exception ends the process.
#include <cstdint>
#include <new>

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  for (;;) *static_cast<volatile char*>(::operator new(1u << 28)) = 1;
}
