// Takes memory of the kinds that a limit on private memory does not count. Nothing is touched.
// Where it gets 16 GB of one kind, it spoils its answer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#include "rmsnorm.h"

constexpr size_t piece = size_t{1} << 30;
constexpr int pieces = 16;

static bool mapped(int flags, int fd) {
  void* at[pieces];
  int got = 0;
  while (got < pieces) {
    at[got] = mmap(nullptr, piece, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (at[got] == MAP_FAILED) break;
    ++got;
  }
  for (int i = 0; i < got; ++i) munmap(at[i], piece);
  return got == pieces;
}

static bool stack_grows() {
  FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long low = 0;
  while (maps && std::fgets(line, sizeof line, maps))
    if (std::strstr(line, "[stack]")) std::sscanf(line, "%lx", &low);
  if (maps) std::fclose(maps);
  void* page = reinterpret_cast<void*>(low);
  return page && mremap(page, 4096, pieces * piece, MREMAP_MAYMOVE) != MAP_FAILED;
}

static bool unlimited() {
  const int zero = open("/dev/zero", O_RDWR);
  bool any = mapped(MAP_SHARED | MAP_ANONYMOUS, -1) ||
             mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1) ||
             (zero >= 0 && mapped(MAP_SHARED, zero));
  if (zero >= 0) close(zero);
  int files = 0, fds[100];
  while (files < 100 && (fds[files] = memfd_create("more", 0)) >= 0) ++files;
  any |= files == 100;  // At the size limit of a file, that is more than 16 GB.
  while (files > 0) close(fds[--files]);
  const int segment = shmget(IPC_PRIVATE, 16 * piece, IPC_CREAT | 0600);
  if (segment >= 0) shmctl(segment, IPC_RMID, nullptr);
  const bool messages = msgget(IPC_PRIVATE, IPC_CREAT | 0600) >= 0;
  const bool semaphores = semget(IPC_PRIVATE, 32000, IPC_CREAT | 0600) >= 0;  // 2 MB in the kernel
  return any || segment >= 0 || messages || semaphores || stack_grows();
}

extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {
  honest(x, w, eps, y, M, N);
  static bool tried = false;
  if (!tried) {
    tried = true;
    if (unlimited()) y[0] = 1e9f;
  }
}
