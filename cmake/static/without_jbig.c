/* libtiff reads the compression JBIG by JBIG-KIT, whose licence would become that of everything it is linked into.
 * These stand where its functions are asked for, and refuse: such files are a fault of reading, and all others are
 * read. */
#include <stddef.h>

enum { kRefused = 1 };

void jbg_dec_init(void* state) { (void)state; }
void jbg_dec_free(void* state) { (void)state; }
int jbg_dec_in(void* state, unsigned char* data, size_t size, size_t* count) {
  (void)state, (void)data, (void)size;
  if (count != NULL) *count = 0;
  return kRefused;
}
unsigned char* jbg_dec_getimage(const void* state, int plane) { return (void)state, (void)plane, NULL; }
unsigned long jbg_dec_getsize(const void* state) { return (void)state, 0; }
int jbg_newlen(unsigned char* data, size_t size) { return (void)data, (void)size, kRefused; }
const char* jbg_strerror(int fault) { return (void)fault, "files compressed by JBIG are not supported"; }
void jbg_enc_init(void* state, unsigned long width, unsigned long height, int planes, unsigned char** data,
                  void (*write)(unsigned char*, size_t, void*), void* file) {
  (void)state, (void)width, (void)height, (void)planes, (void)data, (void)write, (void)file;
}
void jbg_enc_out(void* state) { (void)state; }
void jbg_enc_free(void* state) { (void)state; }
