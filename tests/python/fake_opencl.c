/* A libOpenCL.so.1 with one device that computes nothing and is and fails as FAKE_OPENCL says, for tests of faults and
   of memory. Faults are no-platform, no-device, no-f64, small, build, binary, memory, resources, lost, lost-waiting,
   slow, and of SPIR-V no-il-call, il, il-build; a number after a colon (memory:3, lost:2) is that of the first call
   that fails, and that of memory-once:N of the only one; with call:N the Nth of all calls that may fail does, alone,
   and says `unlucky` in the log. `caches` keeps bytes of its own of the host's memory, as OpenCL allows; `discrete`
   has memory of its own, `no-pinned` none of the host's to map, `narrow` addresses of 32 bits, `no-clock` and
   `no-groups` do not tell theirs, and spirv:N takes SPIR-V 1.N; with `builds-late` the first launch of each kernel
   takes 100 ms; all:N, buffer:N, group:N and local:N bound the memory, a buffer, the items of a kernel's group and what
   kernels need of local memory, and `rusticl` is the platform's name; the device's has `quotes`, or `bytes` that are
   no UTF-8; what `build` says is `silent`. Words stand beside each other with commas. Objects that are not released
   are counted, and the count is printed when the process ends; what is released twice ends it. FAKE_OPENCL_LOG names a
   file that gets a line for each call of interest, with its bytes; a write of memory that is not the driver's has one
   more, `pageable`. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  DEVICE_NOT_FOUND = -1,
  ALLOCATION_FAILURE = -4,
  OUT_OF_RESOURCES = -5,
  BUILD_FAILURE = -11,
  INVALID_VALUE = -30,
  INVALID_QUEUE = -36,
  INVALID_BINARY = -42,
  INVALID_WORK_GROUP_SIZE = -54
};
struct object {
  uint32_t mark;
  void* bytes;   /* of a buffer that was mapped */
  size_t mapped; /* so many of them */
  struct object* next;
  void* host;   /* of one that is the host's */
  size_t room;  /* of its own bytes of the host's */
  int il;       /* of a program: it came as SPIR-V */
  int seen;     /* a kernel that was launched before */
  int64_t more; /* of an event: nanoseconds that it took besides */
};
enum { MARK = 0xC10B7EC7u };
static int thing; /* what handles of platforms and devices point to */
static int alive = 0;
static int64_t ticks = 0;
static struct object* pinned = NULL; /* buffers whose memory the driver has and shows */
static pthread_mutex_t pinning = PTHREAD_MUTEX_INITIALIZER;

/* What stands behind a word of FAKE_OPENCL: 0 where it is not there, and 1 where it has no number. */
static long asked(const char* word) {
  const char* at = getenv("FAKE_OPENCL");
  const size_t length = strlen(word);
  for (; at != NULL && *at != 0; at = strchr(at, ',') == NULL ? "" : strchr(at, ',') + 1) {
    if (strncmp(at, word, length) != 0) continue;
    if (at[length] == 0 || at[length] == ',') return 1;
    if (at[length] == ':') return atol(at + length + 1);
  }
  return 0;
}
/* Whether this call fails: `how` alone always, how:N from call N on. */
static int fails(const char* how, int* calls) {
  const int call = calls == NULL ? 1 : __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);
  const long first = asked(how);
  return first != 0 && call >= first;
}
static void note_bytes(const char* word, size_t bytes) {
  const char* path = getenv("FAKE_OPENCL_LOG");
  FILE* file = path == NULL ? NULL : fopen(path, "a");
  if (file == NULL) return;
  if (bytes == 0)
    fprintf(file, "%s\n", word);
  else
    fprintf(file, "%s %zu\n", word, bytes);
  fclose(file);
}
static void note(const char* word) { note_bytes(word, 0); }
/* Whether this is the call that fails, counted from when the word was given. */
static int unlucky(void) {
  static long given = 0, left = 0;
  const long number = asked("call");
  if (__atomic_exchange_n(&given, number, __ATOMIC_RELAXED) != number) left = number;
  if (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) != 0) return 0;
  note("unlucky");
  return 1;
}
static int32_t give(size_t room, void* place, size_t* size, const void* value, size_t bytes) {
  if (size != NULL) *size = bytes;
  if (place != NULL && room >= bytes) memcpy(place, value, bytes);
  return 0;
}
static int32_t text(size_t room, void* place, size_t* size, const char* value) {
  return give(room, place, size, value, strlen(value) + 1);
}
static void* object(void) {
  struct object* made = calloc(1, sizeof *made);
  made->mark = MARK;
  __atomic_add_fetch(&alive, 1, __ATOMIC_RELAXED);
  return made;
}
static void* made(int32_t* status, int32_t number) {
  if (number == 0 && unlucky()) number = INVALID_QUEUE;
  if (status != NULL) *status = number;
  return number == 0 ? object() : NULL;
}
static int32_t enqueued(int32_t number, void** event) {
  if (number == 0 && unlucky()) number = INVALID_QUEUE;
  if (event != NULL && number == 0) *event = object();
  return number;
}
__attribute__((destructor)) static void count(void) {
  if (alive != 0) fprintf(stderr, "fake OpenCL: %d objects were not released\n", alive);
}

int32_t clGetPlatformIDs(uint32_t room, void** ids, uint32_t* count) {
  if (count != NULL) *count = fails("no-platform", NULL) ? 0 : 1;
  if (ids != NULL && room > 0) ids[0] = &thing;
  return 0;
}
int32_t clGetPlatformInfo(void* p, uint32_t what, size_t room, void* place, size_t* size) {
  (void)p;
  return text(room, place, size, what == 0x0901 ? "OpenCL 1.2 fakes" : fails("rusticl", NULL) ? "rusticl" : "Fakes");
}
int32_t clGetDeviceIDs(void* p, uint64_t type, uint32_t room, void** ids, uint32_t* count) {
  (void)p;
  (void)type;
  if (fails("no-device", NULL)) return DEVICE_NOT_FOUND;
  if (count != NULL) *count = 1;
  if (ids != NULL && room > 0) ids[0] = &thing;
  return 0;
}
int32_t clGetDeviceInfo(void* d, uint32_t what, size_t room, void* place, size_t* size) {
  (void)d;
  char il[32];
  uint64_t number = 1;
  switch (what) {
    case 0x102B:
      return text(room, place, size,
                  asked("bytes")    ? "GPU \xe9\n x"
                  : asked("quotes") ? "Weird \"GPU\" */ 1"
                                    : "fake device");
    case 0x102C:
      return text(room, place, size, "Fakers");
    case 0x102D:
      return text(room, place, size, "1.0");
    case 0x102F:
      return text(room, place, size, "OpenCL 1.2 fake");
    case 0x1030:
      return text(room, place, size,
                  fails("no-f64", NULL) ? "cl_khr_none" : "cl_khr_none cl_khr_fp64 cl_khr_subgroups");
    case 0x105B:
      if (!asked("spirv")) return INVALID_VALUE;
      snprintf(il, sizeof il, "SPIR-V_1.%ld", asked("spirv"));
      return text(room, place, size, il);
    case 0x100C:
      number = asked("no-clock") ? 0 : 1000;
      break;
    case 0x100D:
      number = asked("narrow") ? 32 : 64;
      break;
    case 0x1000:
      number = 4;
      break;
    case 0x1004:
      number = asked("no-groups") ? 0 : 256;
      break;
    case 0x1010:
      if (asked("buffer")) {
        number = (uint64_t)asked("buffer");
        break;
      } /* fall through */
    case 0x101F:
      number = fails("small", NULL) ? 1000 : asked("all") ? (uint64_t)asked("all") : (uint64_t)1 << 32;
      break;
    case 0x1035:
      number = !asked("discrete");
      break;
    case 0x1023:
      number = 32768;
      break;
    default:
      break;
  }
  return give(room, place, size, &number, room != 0 && room < sizeof number ? room : sizeof number);
}
void* clCreateContext(const intptr_t* p, uint32_t n, void* const* d, void* f, void* u, int32_t* status) {
  (void)p, (void)n, (void)d, (void)f, (void)u;
  return made(status, 0);
}
void* clCreateCommandQueue(void* c, void* d, uint64_t bits, int32_t* status) {
  (void)c, (void)d, (void)bits;
  return made(status, 0);
}
void* clCreateBuffer(void* c, uint64_t flags, size_t bytes, void* host, int32_t* status) {
  static int calls = 0;
  static long once = 0, left = 0; /* counted from when the word was given */
  const long number_once = asked("memory-once");
  if (__atomic_exchange_n(&once, number_once, __ATOMIC_RELAXED) != number_once) left = number_once;
  const int bad = fails("memory", &calls) || __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0;
  const int number = bad || ((flags & 16) != 0 && asked("no-pinned")) ? ALLOCATION_FAILURE : 0;
  struct object* buffer = made(status, number);
  (void)c;
  note_bytes((flags & 8) != 0 ? "wrapped" : (flags & 16) != 0 ? "pinned" : "buffer", bytes);
  if (buffer == NULL) return NULL;
  buffer->host = host;
  if (host == NULL || !asked("caches")) return buffer;
  buffer->bytes = malloc(bytes);
  buffer->room = bytes;
  memcpy(buffer->bytes, host, bytes);
  return buffer;
}
void* clEnqueueMapBuffer(void* q, void* m, uint32_t wait, uint64_t flags, size_t at, size_t bytes, uint32_t n,
                         void* const* events, void** event, int32_t* status) {
  struct object* buffer = m;
  (void)q, (void)wait, (void)flags, (void)at, (void)n, (void)events, (void)event;
  note_bytes("map", bytes);
  if ((*status = unlucky() ? INVALID_QUEUE : 0) != 0) return NULL;
  if (buffer->room != 0) memcpy(buffer->host, buffer->bytes, buffer->room);
  if (buffer->host == NULL && buffer->bytes == NULL) {
    buffer->bytes = calloc(1, bytes);
    buffer->mapped = bytes;
    pthread_mutex_lock(&pinning);
    buffer->next = pinned;
    pinned = buffer;
    pthread_mutex_unlock(&pinning);
  }
  return buffer->host != NULL ? buffer->host : buffer->bytes;
}
int32_t clEnqueueUnmapMemObject(void* q, void* m, void* bytes, uint32_t n, void* const* events, void** event) {
  struct object* buffer = m;
  (void)q, (void)n, (void)events;
  if (bytes != buffer->host && bytes != buffer->bytes) abort();
  note("unmap");
  return enqueued(0, event);
}
void* clCreateProgramWithSource(void* c, uint32_t n, const char** texts, const size_t* sizes, int32_t* status) {
  (void)c, (void)n, (void)texts, (void)sizes;
  note("source");
  return made(status, 0);
}
void* clCreateProgramWithBinary(void* c, uint32_t n, void* const* d, const size_t* sizes, const unsigned char** bytes,
                                int32_t* taken, int32_t* status) {
  const int bad = fails("binary", NULL) || sizes[0] != 11 || memcmp(bytes[0], "fake binary", 11) != 0;
  (void)c, (void)n, (void)d;
  note(bad ? "refused" : "binary");
  if (taken != NULL) *taken = bad ? INVALID_BINARY : 0;
  return made(status, bad ? INVALID_BINARY : 0);
}
/* Not among what the loader exports: it is one of OpenCL 1.2. */
static void* with_il(void* c, const void* words, size_t bytes, int32_t* status) {
  const int bad = fails("il", NULL) || bytes % 4 != 0 || bytes < 20 || *(const uint32_t*)words != 0x07230203;
  struct object* program = made(status, bad ? INVALID_VALUE : 0);
  (void)c;
  note_bytes(bad ? "refused" : "spirv", bytes);
  if (program != NULL) program->il = 1;
  return program;
}
void* clGetExtensionFunctionAddressForPlatform(void* p, const char* name) {
  void* (*const call)(void*, const void*, size_t, int32_t*) = with_il;
  void* address = NULL;
  (void)p;
  if (strcmp(name, "clCreateProgramWithILKHR") == 0 && asked("spirv") && !asked("no-il-call"))
    memcpy(&address, &call, sizeof address);
  return address;
}
int32_t clGetProgramInfo(void* p, uint32_t what, size_t room, void* place, size_t* size) {
  const size_t bytes = 11;
  (void)p;
  if (what == 0x1165) return give(room, place, size, &bytes, sizeof bytes);
  memcpy(*(void**)place, "fake binary", bytes);
  return 0;
}
int32_t clBuildProgram(void* p, uint32_t n, void* const* d, const char* options, void* f, void* u) {
  const struct object* program = p;
  (void)n, (void)d, (void)f, (void)u;
  /* Without f64, kernels have to do without. */
  if (fails("no-f64", NULL) && !program->il && strstr(options, "-DPAIRS") == NULL) return BUILD_FAILURE;
  return fails(program->il ? "il-build" : "build", NULL) ? BUILD_FAILURE : unlucky() ? INVALID_QUEUE : 0;
}
int32_t clGetProgramBuildInfo(void* p, void* d, uint32_t what, size_t room, void* place, size_t* size) {
  (void)p, (void)d, (void)what;
  return text(room, place, size, asked("silent") ? "failed" : "kernel_0:2:7: error: the fake compiler says no");
}
void* clCreateKernel(void* p, const char* name, int32_t* status) {
  (void)p, (void)name;
  return made(status, 0);
}
int32_t clSetKernelArg(void* k, uint32_t at, size_t bytes, const void* value) {
  (void)k, (void)at, (void)bytes, (void)value;
  return unlucky() ? INVALID_QUEUE : 0;
}
int32_t clGetKernelWorkGroupInfo(void* k, void* d, uint32_t what, size_t room, void* place, size_t* size) {
  const uint64_t group = asked("group") ? (uint64_t)asked("group") : 256, local = (uint64_t)asked("local");
  (void)k, (void)d;
  if (unlucky()) return INVALID_QUEUE;
  return give(room, place, size, what == 0x11B0 ? &group : &local, sizeof group);
}
int32_t clEnqueueNDRangeKernel(void* q, void* k, uint32_t axes, const size_t* begin, const size_t* items,
                               const size_t* group, uint32_t n, void* const* events, void** event) {
  static int calls = 0;
  (void)q, (void)begin, (void)n, (void)events;
  for (uint32_t axis = 0; axis < axes; ++axis)
    if (items[axis] % group[axis] != 0) return INVALID_WORK_GROUP_SIZE;
  note("kernel");
  int dummy = __atomic_load_n(&calls, __ATOMIC_RELAXED);
  if (fails("lost", &calls)) return INVALID_QUEUE;
  const int32_t number = enqueued(fails("resources", &dummy) ? OUT_OF_RESOURCES : 0, event);
  const int first = __atomic_exchange_n(&((struct object*)k)->seen, 1, __ATOMIC_RELAXED) == 0;
  if (first && number == 0 && event != NULL && asked("builds-late")) (*(struct object**)event)->more = 100000000;
  return number;
}
int32_t clEnqueueWriteBuffer(void* q, void* m, uint32_t wait, size_t at, size_t bytes, const void* from, uint32_t n,
                             void* const* events, void** event) {
  (void)q, (void)m, (void)wait, (void)at, (void)n, (void)events;
  note_bytes("write", bytes);
  int own = 0;
  pthread_mutex_lock(&pinning);
  for (const struct object* buffer = pinned; buffer != NULL; buffer = buffer->next)
    own |= (uintptr_t)from >= (uintptr_t)buffer->bytes &&
           (uintptr_t)from + bytes <= (uintptr_t)buffer->bytes + buffer->mapped;
  pthread_mutex_unlock(&pinning);
  if (!own) note_bytes("pageable", bytes);
  return enqueued(0, event);
}
int32_t clEnqueueReadBuffer(void* q, void* m, uint32_t wait, size_t at, size_t bytes, void* to, uint32_t n,
                            void* const* events, void** event) {
  (void)q, (void)m, (void)wait, (void)at, (void)n, (void)events;
  note_bytes("read", bytes);
  memset(to, 0, bytes);
  return enqueued(0, event);
}
int32_t clWaitForEvents(uint32_t n, void* const* events) {
  const struct timespec pause = {0, 100000000};
  (void)n, (void)events;
  if (fails("slow", NULL)) nanosleep(&pause, NULL);
  return fails("lost-waiting", NULL) ? OUT_OF_RESOURCES : unlucky() ? INVALID_QUEUE : 0;
}
/* Each moment is a microsecond after the one that was asked for before. */
int32_t clGetEventProfilingInfo(void* e, uint32_t what, size_t room, void* place, size_t* size) {
  const int64_t more = what == 0x1283 ? ((const struct object*)e)->more : 0;
  if (unlucky()) return INVALID_QUEUE;
  const int64_t now = __atomic_add_fetch(&ticks, 1000 + more, __ATOMIC_RELAXED);
  return give(room, place, size, &now, sizeof now);
}
int32_t clEnqueueMarkerWithWaitList(void* q, uint32_t n, void* const* events, void** event) {
  (void)q, (void)n, (void)events;
  return enqueued(0, event);
}
int32_t clEnqueueBarrierWithWaitList(void* q, uint32_t n, void* const* events, void** event) {
  (void)q, (void)n, (void)events;
  return enqueued(0, event);
}
int32_t clFlush(void* q) {
  (void)q;
  return unlucky() ? INVALID_QUEUE : 0;
}
int32_t clFinish(void* q) {
  static int calls = 0;
  (void)q;
  note("finish");
  return fails("lost-waiting", &calls) ? OUT_OF_RESOURCES : unlucky() ? INVALID_QUEUE : 0;
}
static int32_t release(void* p) {
  struct object* object = p;
  if (object->mark != MARK) abort();
  object->mark = 0;
  pthread_mutex_lock(&pinning);
  for (struct object** at = &pinned; *at != NULL; at = &(*at)->next)
    if (*at == object) {
      *at = object->next;
      break;
    }
  pthread_mutex_unlock(&pinning);
  free(object->bytes);
  free(object);
  __atomic_sub_fetch(&alive, 1, __ATOMIC_RELAXED);
  return 0;
}
#define RELEASES(name) \
  int32_t name(void* p) { return release(p); }
RELEASES(clReleaseContext)
RELEASES(clReleaseCommandQueue)
RELEASES(clReleaseMemObject)
RELEASES(clReleaseProgram)
RELEASES(clReleaseKernel)
RELEASES(clReleaseEvent)
