// Ends by a real-time signal, for which most tables of names have no entry.
#include <csignal>
#include <cstdint>

extern "C" void run(const float*, float*, int64_t, int64_t) { std::raise(SIGRTMIN + 3); }
