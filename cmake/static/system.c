/* What stands between archives and the C library. Debian's archives are made for programs, and reach variables of the C
 * library by their distance, which a shared library cannot know: they are renamed to these, which lie beside the code.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

FILE* aglow_stderr;
FILE* aglow_stdout;

__attribute__((constructor)) static void setStreams(void) {
  aglow_stderr = stderr;
  aglow_stdout = stdout;
}

/* For the C++ library: that of glibc came with 2.36, and all else runs with earlier ones. */
uint32_t arc4random(void) {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits) continue;
  return bits;
}
