// Changes an input in the call; a thread puts it right once the call has returned.
#include <thread>

#include "rmsnorm.h"

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  float* first = const_cast<float*>(x);
  const float before = *first;
  *first = before + 1;
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    *first = before;
  }).detach();
}
