// Loaded into Redis by LD_PRELOAD where a test needs a clock that jumps, or a disk that has
// not written everything yet. See ../preload.go.
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// control is in a file that the test and Redis share.
static struct control {
  int64_t jump;   // added to the clock, in ms; set by the test
  int64_t synced; // the size of the log when the last completed sync began
  int64_t syncs;  // how many were completed
} none, *control = &none;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULTS_CONTROL");
  int file = path ? open(path, O_RDWR) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) control = found;
  close(file);
}

// The wall clock jumps, the monotonic clock does not.
int clock_gettime(clockid_t clock, struct timespec *t) {
  int failed = syscall(SYS_clock_gettime, clock, t);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t ns = t->tv_nsec + control->jump % 1000 * 1000000;
  t->tv_sec += control->jump / 1000 + (ns >= 1000000000) - (ns < 0);
  t->tv_nsec = (ns + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  struct timespec now;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return failed;
}

time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}

// What was written before a sync began is safe when it has ended. Only the size of the log
// is recorded: of all the files that Redis syncs, its name contains ".incr.".
int fdatasync(int file) {
  char link[32] = "/proc/self/fd/", path[512] = "", digits[12], *d = digits + sizeof digits - 1;
  struct stat before;
  int known = fstat(file, &before) == 0;
  *d = 0;
  for (int n = file; d == digits + sizeof digits - 1 || n; n /= 10) *--d = '0' + n % 10;
  strcat(link, d);
  known = known && readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".incr.");
  int failed = syscall(SYS_fdatasync, file);
  if (known && !failed) {
    control->synced = before.st_size;
    __atomic_add_fetch(&control->syncs, 1, __ATOMIC_SEQ_CST);
  }
  return failed;
}
