/* Preloaded into a program, fails one of its allocations, or all from one on: those that main() and what it calls make,
 * counted from 1; not those of the constructors of libraries, which nobody can handle. FAIL_AT=N picks it, FAIL_ON=1 goes on failing; the number of allocations goes to FAIL_COUNT, a file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_long count;
static long fail_at;
static int armed, go_on;

static int fails(void) {
  if (!armed) return 0;
  long number = atomic_fetch_add(&count, 1) + 1;
  if (fail_at == 0 || (go_on ? number < fail_at : number != fail_at)) return 0;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t items, size_t bytes) { return fails() ? NULL : __libc_calloc(items, bytes); }
void *realloc(void *old, size_t bytes) { return fails() ? NULL : __libc_realloc(old, bytes); }
void *memalign(size_t alignment, size_t bytes) { return fails() ? NULL : __libc_memalign(alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **to, size_t alignment, size_t bytes) {
  void *made = memalign(alignment, bytes);
  if (made == NULL) return ENOMEM;
  *to = made;
  return 0;
}

void *dlopen(const char *file, int mode) {
  typedef void *Open(const char *, int);
  Open *real = (Open *)dlsym(RTLD_NEXT, "dlopen");
  int before = armed;
  armed = 0;
  void *library = real(file, mode);
  armed = before;
  return library;
}

static int (*program)(int, char **, char **);

static int counted(int argc, char **argv, char **environment) {
  const char *at = getenv("FAIL_AT"), *file = getenv("FAIL_COUNT");
  fail_at = at == NULL ? 0 : atol(at);
  go_on = getenv("FAIL_ON") != NULL;
  armed = 1;
  int result = program(argc, argv, environment);
  armed = 0;
  if (file != NULL) {
    FILE *out = fopen(file, "w");
    if (out != NULL) {
      fprintf(out, "%ld", atomic_load(&count));
      fclose(out);
    }
  }
  return result;
}

/* What happens before main() is not the program's to handle. */
int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*before)(void),
                      void (*after)(void), void (*end)(void), void *stack) {
  typedef int Start(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
  Start *real = (Start *)dlsym(RTLD_NEXT, "__libc_start_main");
  program = start;
  return real(counted, argc, argv, before, after, end, stack);
}
