/* The runner's side of a batch: wait for the judge, make the calls, say that they are done.
 *
 * Whoever does this in a slower way than need be can be replaced by the candidate in its process,
 * and the difference would count as the candidate's speed. So it is native, and what it costs is
 * measured with the same loop around no calls.
 *
 * Compiled together with a line that defines, from the arguments of the problem,
 *     CALL(f, a)   call f with the words a[0], a[1], ... in their C types
 * The frames are those of channel.py. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

enum { MAGIC = 0x4B415243, COMMAND_CALL = 2, EVENT_DONE = 3, MAX_CALLS = 32 };
/* What serve() came back for. */
enum { HUNG_UP = 0, BIND_FOLLOWS = 1, CALL_FAILED = 2, NOT_A_REQUEST = 3 };

struct request {
  uint32_t magic, command;
  uint64_t number;
  uint32_t slot, calls;
  uint8_t order[MAX_CALLS];
};

struct event {
  uint32_t magic, kind;
  uint64_t number, elapsed_ns;
};

union word {
  void *pointer;
  double real;
  int64_t integer;
};

typedef int (*callback)(uint32_t slot, uint32_t set); /* not 0: the call failed */

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* slots[s] holds the words of all sets one after the other, width words each.
 * With an entry it is called; without, python is; without both, pause_ns go by. */
int serve(int fd, void *entry, union word **slots, uint32_t width, callback python,
          int64_t pause_ns) {
  for (;;) {
    struct request request;
    ssize_t size;
    do size = recv(fd, &request, sizeof request, 0);
    while (size < 0 && errno == EINTR);
    if (size <= 0) return HUNG_UP;
    if (size != sizeof request || request.magic != MAGIC) return NOT_A_REQUEST;
    if (request.command != COMMAND_CALL) return BIND_FOLLOWS;
    const int64_t start = now_ns();
    if (!entry && !python) while (now_ns() - start < pause_ns);
    for (uint32_t k = 0; k < request.calls; ++k) {
      const uint32_t set = request.order[k];
      if (entry) {
        const union word *words = slots[request.slot] + (uint64_t)set * width;
        (void)words; /* there may be no arguments */
        CALL(entry, words);
      }
      if (python && python(request.slot, set)) return CALL_FAILED;
    }
    const struct event done = {MAGIC, EVENT_DONE, request.number, now_ns() - start};
    if (send(fd, &done, sizeof done, MSG_NOSIGNAL) < 0) return HUNG_UP;
  }
}
