/* A libOpenCL.so.1 with one device that computes nothing and fails as FAKE_OPENCL says, for tests of faults:
   no-platform, no-device, no-f64, small, build, memory, lost. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  DEVICE_NOT_FOUND = -1,
  ALLOCATION_FAILURE = -4,
  OUT_OF_RESOURCES = -5,
  BUILD_FAILURE = -11,
  INVALID_QUEUE = -36
};
static int thing; /* what all handles point to */

static int fails(const char* how) {
  const char* wanted = getenv("FAKE_OPENCL");
  return wanted != NULL && strcmp(wanted, how) == 0;
}
static int32_t give(size_t room, void* place, size_t* size, const void* value, size_t bytes) {
  if (size != NULL) *size = bytes;
  if (place != NULL && room >= bytes) memcpy(place, value, bytes);
  return 0;
}
static int32_t text(size_t room, void* place, size_t* size, const char* value) {
  return give(room, place, size, value, strlen(value) + 1);
}
static void* made(int32_t* status, int32_t number) {
  if (status != NULL) *status = number;
  return number == 0 ? &thing : NULL;
}

int32_t clGetPlatformIDs(uint32_t room, void** ids, uint32_t* count) {
  if (count != NULL) *count = fails("no-platform") ? 0 : 1;
  if (ids != NULL && room > 0) ids[0] = &thing;
  return 0;
}
int32_t clGetPlatformInfo(void* p, uint32_t what, size_t room, void* place, size_t* size) {
  (void)p;
  (void)what;
  return text(room, place, size, "Fakes");
}
int32_t clGetDeviceIDs(void* p, uint64_t type, uint32_t room, void** ids, uint32_t* count) {
  (void)p;
  (void)type;
  if (fails("no-device")) return DEVICE_NOT_FOUND;
  if (count != NULL) *count = 1;
  if (ids != NULL && room > 0) ids[0] = &thing;
  return 0;
}
int32_t clGetDeviceInfo(void* d, uint32_t what, size_t room, void* place, size_t* size) {
  (void)d;
  uint64_t number = 1;
  switch (what) {
    case 0x102B:
      return text(room, place, size, "fake device");
    case 0x102D:
      return text(room, place, size, "1.0");
    case 0x102F:
      return text(room, place, size, "OpenCL 1.2 fake");
    case 0x1030:
      return text(room, place, size, fails("no-f64") ? "cl_khr_none" : "cl_khr_fp64");
    case 0x1000:
      number = 4;
      break;
    case 0x1004:
      number = 256;
      break;
    case 0x1010:
    case 0x101F:
      number = fails("small") ? 1000 : (uint64_t)1 << 32;
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
  (void)c, (void)flags, (void)bytes, (void)host;
  return made(status, fails("memory") ? ALLOCATION_FAILURE : 0);
}
void* clCreateProgramWithSource(void* c, uint32_t n, const char** texts, const size_t* sizes, int32_t* status) {
  (void)c, (void)n, (void)texts, (void)sizes;
  return made(status, 0);
}
int32_t clBuildProgram(void* p, uint32_t n, void* const* d, const char* options, void* f, void* u) {
  (void)p, (void)n, (void)d, (void)options, (void)f, (void)u;
  return fails("build") ? BUILD_FAILURE : 0;
}
int32_t clGetProgramBuildInfo(void* p, void* d, uint32_t what, size_t room, void* place, size_t* size) {
  (void)p, (void)d, (void)what;
  return text(room, place, size, "line 1: the fake compiler says no");
}
void* clCreateKernel(void* p, const char* name, int32_t* status) {
  (void)p, (void)name;
  return made(status, 0);
}
int32_t clSetKernelArg(void* k, uint32_t at, size_t bytes, const void* value) {
  (void)k, (void)at, (void)bytes, (void)value;
  return 0;
}
int32_t clEnqueueNDRangeKernel(void* q, void* k, uint32_t axes, const size_t* first, const size_t* items,
                               const size_t* group, uint32_t n, void* const* events, void** event) {
  (void)q, (void)k, (void)axes, (void)first, (void)items, (void)group, (void)n, (void)events, (void)event;
  return fails("lost") ? INVALID_QUEUE : fails("resources") ? OUT_OF_RESOURCES : 0;
}
int32_t clEnqueueWriteBuffer(void* q, void* m, uint32_t wait, size_t at, size_t bytes, const void* from, uint32_t n,
                             void* const* events, void** event) {
  (void)q, (void)m, (void)wait, (void)at, (void)bytes, (void)from, (void)n, (void)events, (void)event;
  return 0;
}
int32_t clEnqueueReadBuffer(void* q, void* m, uint32_t wait, size_t at, size_t bytes, void* to, uint32_t n,
                            void* const* events, void** event) {
  (void)q, (void)m, (void)wait, (void)at, (void)n, (void)events, (void)event;
  memset(to, 0, bytes);
  return 0;
}
int32_t clFinish(void* q) {
  (void)q;
  return 0;
}
#define RELEASES(name)    \
  int32_t name(void* p) { \
    (void)p;              \
    return 0;             \
  }
RELEASES(clReleaseContext)
RELEASES(clReleaseCommandQueue)
RELEASES(clReleaseMemObject)
RELEASES(clReleaseProgram)
RELEASES(clReleaseKernel)
