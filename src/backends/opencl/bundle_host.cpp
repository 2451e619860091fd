// The part of a device bundle's C file that is the same for all models. $name and $NAME stand for the bundle's name;
// what is the file's own begins with aglow_, as no bundle does (c_names.h).
#include "backends/opencl/bundle.h"

namespace aglow::opencl {

const char* bundleIncludes() {
  return R"(
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
)";
}

// The call is found at run time: it is of OpenCL 2.1, and the program links and runs with loaders of 1.2.
const char* bundleSpirv() {
  return R"(
enum { AGLOW_DEVICE_IL_VERSION = 0x105B };
typedef cl_program(CL_API_CALL *aglow_create_with_il)(cl_context, const void *, size_t, cl_int *);

static int aglow_takes_spirv(cl_device_id id) {
  const unsigned major = aglow_kernel_words[1] >> 16 & 255, minor = aglow_kernel_words[1] >> 8 & 255;
  const char *at;
  char *list;
  size_t length = 0;
  cl_uint bits = 0;
  int taken = 0;
  clGetDeviceInfo(id, CL_DEVICE_ADDRESS_BITS, sizeof bits, &bits, NULL);
  if (bits != 64) return 0; /* of its addresses */
  if (clGetDeviceInfo(id, AGLOW_DEVICE_IL_VERSION, 0, NULL, &length) != CL_SUCCESS || length == 0) return 0;
  list = (char *)calloc(length + 1, 1);
  if (list == NULL) return 0;
  if (clGetDeviceInfo(id, AGLOW_DEVICE_IL_VERSION, length, list, NULL) == CL_SUCCESS)
    for (at = strstr(list, "SPIR-V_"); at != NULL; at = strstr(at + 1, "SPIR-V_")) {
      unsigned of_device[2] = {0, 0};
      if (sscanf(at, "SPIR-V_%u.%u", &of_device[0], &of_device[1]) == 2)
        taken |= of_device[0] == major && of_device[1] >= minor;
    }
  free(list);
  return taken;
}

static int aglow_has_doubles(cl_device_id id);

/* The kernels, built; NULL where the device does not take them as SPIR-V: it gets their source. */
static cl_program aglow_from_spirv(cl_context context, cl_device_id id, const char *options) {
  static const char *const names[] = {"clCreateProgramWithILKHR", "clCreateProgramWithIL"};
  cl_platform_id platform = NULL;
  void *address = NULL;
  aglow_create_with_il create;
  cl_program program;
  cl_int number = CL_SUCCESS;
  int i;
  if (!aglow_takes_spirv(id) || (AGLOW_SPIRV_F64 && !aglow_has_doubles(id))) return NULL;
  if (clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) != CL_SUCCESS) return NULL;
  for (i = 0; i < 2 && address == NULL; ++i) address = clGetExtensionFunctionAddressForPlatform(platform, names[i]);
  if (address == NULL) return NULL;
  memcpy(&create, &address, sizeof create);
  program = create(context, aglow_kernel_words, sizeof aglow_kernel_words, &number);
  if (number != CL_SUCCESS || program == NULL) return NULL;
  if (clBuildProgram(program, 1, &id, options, NULL, NULL) == CL_SUCCESS) return program;
  clReleaseProgram(program);
  return NULL;
}
)";
}

const char* bundleSourceAlone() {
  return R"(
static cl_program aglow_from_spirv(cl_context context, cl_device_id id, const char *options) {
  (void)context, (void)id, (void)options;
  return NULL;
}
)";
}

const char* bundleHost() {
  return R"(
struct $name_device {
  cl_device_id id;
  cl_context context;
  cl_command_queue queue;
  cl_program program;
  cl_mem buffers[AGLOW_BUFFERS];
  cl_kernel kernels[AGLOW_STEPS];
  int kernel_count;
  uint8_t *start; /* of the state */
  int ready;      /* opened whole */
  struct fault faults[AGLOW_FAULT_COUNT];
  char words[4096];
};

static int aglow_say($name_device *device, int status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(device->words, sizeof device->words, format, arguments);
  va_end(arguments);
  return status;
}

static int aglow_failed($name_device *device, const char *call, cl_int number) {
  /* clFinish, which allocates nothing, has it of a device that failed. */
  const int memory = number == CL_MEM_OBJECT_ALLOCATION_FAILURE || number == CL_OUT_OF_HOST_MEMORY ||
                     (number == CL_OUT_OF_RESOURCES && strcmp(call, "clFinish") != 0);
  return aglow_say(device, memory ? $NAME_NO_MEMORY : $NAME_DEVICE_FAULT, "%s failed with error %d", call, (int)number);
}

static uint64_t aglow_hash_of(const uint8_t *bytes, size_t lines) {
  const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
  uint64_t state[8] = {1, 2, 3, 4, 5, 6, 7, 8}, hash = lines;
  size_t line;
  int i;
  for (line = 0; line < lines; ++line, bytes += 64)
    for (i = 0; i < 8; ++i) {
      uint64_t word;
      memcpy(&word, bytes + 8 * i, 8);
      word = (state[i] ^ word) * odd;
      state[i] = word ^ (word >> 29);
    }
  for (i = 0; i < 8; ++i) {
    hash = (hash ^ state[i]) * odd;
    hash ^= hash >> 32;
  }
  return hash;
}

/* ---- the choice of a device ---- */

/* A number, or a part of the name in any letter case; an empty word fits all. */
static int aglow_fits(const char *wanted, size_t length, unsigned number, const char *name) {
  size_t i, at;
  unsigned value = 0;
  for (i = 0; i < length && isdigit((unsigned char)wanted[i]); ++i) /* no device has a number of nine digits */
    value = value < 100000000 ? value * 10 + (unsigned)(wanted[i] - '0') : value;
  if (i == length) return length == 0 || value == number;
  for (at = 0; name[at] != 0; ++at) {
    for (i = 0; i < length && name[at + i] != 0; ++i)
      if (tolower((unsigned char)name[at + i]) != tolower((unsigned char)wanted[i])) break;
    if (i == length) return 1;
  }
  return 0;
}

static int aglow_has_doubles(cl_device_id id) {
  size_t length = 0;
  char *extensions;
  int doubles = 0;
  if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &length) != CL_SUCCESS) return 0;
  extensions = (char *)calloc(length + 1, 1);
  if (extensions == NULL) return 0;
  if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, length, extensions, NULL) == CL_SUCCESS)
    doubles = strstr(extensions, "cl_khr_fp64") != NULL;
  free(extensions);
  return doubles;
}

/* Whether all kernels can run there. */
static int aglow_takes(cl_device_id id) {
  cl_bool available = CL_FALSE;
  size_t items = 0;
  cl_ulong largest = 0;
  clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
  clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof items, &items, NULL);
  clGetDeviceInfo(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
  if (!available || (AGLOW_NEEDS_F64 && !aglow_has_doubles(id))) return 0;
  return items >= AGLOW_GROUP_ITEMS && largest >= AGLOW_LARGEST_BUFFER;
}

static int aglow_choose($name_device *device, const char *wanted) {
  const char *slash;
  cl_platform_id platforms[16];
  cl_uint count = 0, p, d;
  int gpu = 0;
  if (wanted == NULL) wanted = getenv("AGLOW_OPENCL_DEVICE");
  if (wanted == NULL) wanted = "";
  slash = strchr(wanted, '/');
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) count = 0;
  for (p = 0; p < count && p < 16; ++p) {
    cl_device_id ids[32];
    cl_uint devices = 0;
    char name[256] = "";
    clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    if (slash != NULL && !aglow_fits(wanted, (size_t)(slash - wanted), p, name)) continue;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 32, ids, &devices) != CL_SUCCESS) continue;
    for (d = 0; d < devices && d < 32; ++d) {
      const char *part = slash == NULL ? wanted : slash + 1;
      cl_device_type type = 0;
      char own[256] = "";
      clGetDeviceInfo(ids[d], CL_DEVICE_NAME, sizeof own - 1, own, NULL);
      clGetDeviceInfo(ids[d], CL_DEVICE_TYPE, sizeof type, &type, NULL);
      if (!aglow_fits(part, strlen(part), d, own) || !aglow_takes(ids[d])) continue;
      if (device->id != NULL && (gpu || (type & CL_DEVICE_TYPE_GPU) == 0)) continue;
      device->id = ids[d];
      gpu = (type & CL_DEVICE_TYPE_GPU) != 0 || *wanted != 0;
    }
  }
  if (device->id != NULL) return $NAME_OK;
  return aglow_say(device, $NAME_BAD_DEVICE, "no OpenCL device '%s' that has %sgroups of %d items and the memory",
                   wanted, AGLOW_NEEDS_F64 ? "cl_khr_fp64, " : "", (int)AGLOW_GROUP_ITEMS);
}

/* ---- kernels and memory ---- */

/* With as much of the compiler's words as there is room for. */
static int aglow_not_built($name_device *device, cl_int number) {
  size_t length = 0;
  char *log;
  clGetProgramBuildInfo(device->program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &length);
  log = (char *)calloc(length + 1, 1);
  if (log != NULL)
    clGetProgramBuildInfo(device->program, device->id, CL_PROGRAM_BUILD_LOG, length, log, NULL);
  aglow_say(device, $NAME_DEVICE_FAULT, "clBuildProgram failed with error %d: %s", (int)number, log == NULL ? "" : log);
  free(log);
  return $NAME_DEVICE_FAULT;
}

static int aglow_build($name_device *device) {
  cl_device_fp_config config = 0;
  const char *exact = "-cl-fp32-correctly-rounded-divide-sqrt";
  char options[80];
  cl_int number = CL_SUCCESS;
  clGetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
  if ((config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) == 0) exact = "";
  device->program = aglow_from_spirv(device->context, device->id, exact);
  if (device->program != NULL) return $NAME_OK;
  device->program = clCreateProgramWithSource(device->context, sizeof aglow_kernel_text / sizeof *aglow_kernel_text,
                                              (const char **)aglow_kernel_text, NULL, &number);
  if (number != CL_SUCCESS) return aglow_failed(device, "clCreateProgramWithSource", number);
  snprintf(options, sizeof options, "-w -cl-std=CL1.2 %s%s", exact,
           AGLOW_F64_PAIRS || !aglow_has_doubles(device->id) ? " -DPAIRS" : "");
  number = clBuildProgram(device->program, 1, &device->id, options, NULL, NULL);
  return number == CL_SUCCESS ? $NAME_OK : aglow_not_built(device, number);
}

static int aglow_allocate($name_device *device) {
  int i;
  for (i = 0; i < AGLOW_BUFFERS; ++i) {
    cl_int number = CL_SUCCESS;
    device->buffers[i] = clCreateBuffer(device->context, CL_MEM_READ_WRITE, aglow_buffer_bytes[i], NULL, &number);
    if (number != CL_SUCCESS) return aglow_failed(device, "clCreateBuffer", number);
  }
  return $NAME_OK;
}

/* Kernels have their arguments from the beginning. */
static int aglow_prepare($name_device *device, const struct entry *entry) {
  cl_ulong has = 0;
  int i, j;
  clGetDeviceInfo(device->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof has, &has, NULL);
  for (i = 0; i < entry->step_count; ++i) {
    const struct step *step = &entry->steps[i];
    char name[32];
    cl_int number = CL_SUCCESS;
    cl_kernel kernel;
    cl_ulong needs = 0;
    snprintf(name, sizeof name, "kernel_%d", step->kernel);
    kernel = clCreateKernel(device->program, name, &number);
    if (number != CL_SUCCESS) return aglow_failed(device, "clCreateKernel", number);
    device->kernels[device->kernel_count++] = kernel;
    clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof needs, &needs, NULL);
    if (needs > has)
      return aglow_say(device, $NAME_BAD_DEVICE, "%s needs %lu bytes of local memory; the device has %lu", name,
                 (unsigned long)needs, (unsigned long)has);
    for (j = 0; j < step->count; ++j) {
      const struct place *place = &entry->places[step->first + j];
      number = clSetKernelArg(kernel, (cl_uint)(2 * j), sizeof(cl_mem), &device->buffers[place->buffer]);
      if (number == CL_SUCCESS) number = clSetKernelArg(kernel, (cl_uint)(2 * j + 1), sizeof(cl_ulong), &place->offset);
      if (number != CL_SUCCESS) return aglow_failed(device, "clSetKernelArg", number);
    }
  }
  return $NAME_OK;
}

/* A device that failed is why no memory was left for a command after it. */
static int aglow_finish($name_device *device, int status) {
  const cl_int number = clFinish(device->queue);
  const int tells = status != $NAME_OK && $NAME_STATUS(status) != $NAME_NO_MEMORY;
  return number != CL_SUCCESS && !tells ? aglow_failed(device, "clFinish", number) : status;
}

static int aglow_put($name_device *device, int buffer, size_t offset, size_t bytes, const void *from) {
  const cl_int number = bytes == 0 ? CL_SUCCESS
                                   : clEnqueueWriteBuffer(device->queue, device->buffers[buffer], CL_FALSE, offset,
                                                          bytes, from, 0, NULL, NULL);
  return number == CL_SUCCESS ? $NAME_OK : aglow_failed(device, "clEnqueueWriteBuffer", number);
}

static int aglow_get($name_device *device, int buffer, size_t offset, size_t bytes, void *to) {
  const cl_int number = bytes == 0 ? CL_SUCCESS
                                   : clEnqueueReadBuffer(device->queue, device->buffers[buffer], CL_FALSE, offset,
                                                         bytes, to, 0, NULL, NULL);
  return number == CL_SUCCESS ? $NAME_OK : aglow_failed(device, "clEnqueueReadBuffer", number);
}

static int aglow_load($name_device *device, const uint8_t *constants) {
  cl_int number = CL_SUCCESS;
  int status, i;
  device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &number);
  if (number != CL_SUCCESS) return aglow_failed(device, "clCreateContext", number);
  device->queue = clCreateCommandQueue(device->context, device->id, 0, &number);
  if (number != CL_SUCCESS) return aglow_failed(device, "clCreateCommandQueue", number);
  if ((status = aglow_build(device)) != $NAME_OK) return status;
  if ((status = aglow_allocate(device)) != $NAME_OK) return status;
  for (i = 0; i < AGLOW_ENTRIES; ++i)
    if ((status = aglow_prepare(device, &aglow_entries[i])) != $NAME_OK) return status;
  device->start = (uint8_t *)calloc(aglow_buffer_bytes[AGLOW_STATE], 1);
  if (device->start == NULL) return aglow_say(device, $NAME_NO_MEMORY, "there is no memory for the state");
  for (i = 0; i < AGLOW_INITIALS; ++i)
    if (aglow_initials[i].from >= 0)
      memcpy(device->start + aglow_initials[i].offset, constants + aglow_initials[i].from, aglow_initials[i].bytes);
  status = aglow_put(device, AGLOW_WEIGHTS, 0, $NAME_CONSTANTS_BYTES, constants);
  if (status == $NAME_OK) status = aglow_put(device, AGLOW_STATE, 0, aglow_buffer_bytes[AGLOW_STATE], device->start);
  status = aglow_finish(device, status);
  device->ready = status == $NAME_OK;
  return status;
}

int $name_check(const uint8_t *constants) {
  uint64_t seal[2];
  if (constants == NULL) return $NAME_BAD_MEMORY;
  memcpy(seal, constants + ($NAME_CONSTANTS_BYTES - 64), sizeof seal);
  if (seal[1] != $NAME_WEIGHTS_LAYOUT) return $NAME_BAD_WEIGHTS;
  return aglow_hash_of(constants, $NAME_CONSTANTS_BYTES / 64 - 1) == seal[0] ? $NAME_OK : $NAME_BAD_WEIGHTS;
}

int $name_open(const char *wanted, const uint8_t *constants, $name_device **opened) {
  int status;
  if (opened == NULL) return $NAME_BAD_MEMORY;
  *opened = ($name_device *)calloc(1, sizeof **opened);
  if (*opened == NULL) return $NAME_NO_MEMORY;
  if (constants == NULL) return aglow_say(*opened, $NAME_BAD_MEMORY, "the address of the constants is null");
  if ((status = $name_check(constants)) != $NAME_OK)
    return aglow_say(*opened, status, "the constants are damaged, or of another layout than the kernels'");
  if ((status = aglow_choose(*opened, wanted)) != $NAME_OK) return status;
  return aglow_load(*opened, constants);
}

const char *$name_words(const $name_device *device) { return device == NULL ? "out of memory" : device->words; }

void $name_close($name_device *device) {
  int i;
  if (device == NULL) return;
  for (i = 0; i < device->kernel_count; ++i) clReleaseKernel(device->kernels[i]);
  for (i = 0; i < AGLOW_BUFFERS; ++i)
    if (device->buffers[i] != NULL) clReleaseMemObject(device->buffers[i]);
  if (device->program != NULL) clReleaseProgram(device->program);
  if (device->queue != NULL) clReleaseCommandQueue(device->queue);
  if (device->context != NULL) clReleaseContext(device->context);
  free(device->start);
  free(device);
}

/* ---- runs ---- */

/* What all of them need. Of a device that did not open the words stay. */
static int aglow_ready($name_device *device, const void *memory) {
  if (device == NULL) return $NAME_BAD_MEMORY;
  if (!device->ready) return $NAME_BAD_DEVICE;
  return memory == NULL ? aglow_say(device, $NAME_BAD_MEMORY, "the address of the memory is null") : $NAME_OK;
}

static int aglow_enqueue($name_device *device, const struct entry *entry, cl_kernel *kernels, uint8_t *memory) {
  const size_t fault_bytes = (size_t)entry->checked_count * sizeof(struct fault);
  int status, i;
  memset(device->faults, 0, sizeof device->faults);
  if ((status = aglow_put(device, AGLOW_FAULTS, 0, fault_bytes, device->faults)) != $NAME_OK) return status;
  for (i = 0; i < entry->tensor_count; ++i) {
    const struct tensor *tensor = &entry->tensors[i];
    if (!tensor->reads) continue;
    status = aglow_put(device, AGLOW_IO, tensor->offset, tensor->bytes, memory + tensor->offset);
    if (status != $NAME_OK) return status;
  }
  for (i = 0; i < entry->step_count; ++i) {
    const cl_int number = clEnqueueNDRangeKernel(device->queue, kernels[i], 2, NULL, entry->steps[i].items,
                                                 entry->steps[i].group, 0, NULL, NULL);
    if (number != CL_SUCCESS)
      return aglow_failed(device, "clEnqueueNDRangeKernel", number) | entry->steps[i].instruction << AGLOW_STATUS_BITS;
  }
  for (i = 0; i < entry->tensor_count; ++i) {
    const struct tensor *tensor = &entry->tensors[i];
    if (!tensor->writes) continue;
    status = aglow_get(device, AGLOW_IO, tensor->offset, tensor->bytes, memory + tensor->offset);
    if (status != $NAME_OK) return status;
  }
  return aglow_get(device, AGLOW_FAULTS, 0, fault_bytes, device->faults);
}

static int aglow_run($name_device *device, int number, uint8_t *memory) {
  const struct entry *entry = &aglow_entries[number];
  cl_kernel *kernels;
  int status, i;
  if ((status = aglow_ready(device, memory)) != $NAME_OK) return status;
  kernels = device->kernels;
  for (i = 0; i < number; ++i) kernels += aglow_entries[i].step_count;
  /* Also after a fault: commands before it may still use the memory. */
  status = aglow_finish(device, aglow_enqueue(device, entry, kernels, memory));
  for (i = 0; i < entry->checked_count && status == $NAME_OK; ++i)
    if (device->faults[i].seen != 0)
      status = entry->checked[i] << AGLOW_STATUS_BITS |
               aglow_say(device, $NAME_BAD_INDEX, "index %lld lies outside of its axis", (long long)device->faults[i].index);
  return status;
}
)";
}

const char* bundleState() {
  return R"(
static int aglow_move_state($name_device *device, uint8_t *state, int out) {
  const int status = aglow_ready(device, state);
  if (status != $NAME_OK) return status;
  return aglow_finish(device, out ? aglow_get(device, AGLOW_STATE, 0, $NAME_STATE_BYTES, state)
                                  : aglow_put(device, AGLOW_STATE, 0, $NAME_STATE_BYTES, state));
}

int $name_state_init($name_device *device) {
  return aglow_move_state(device, device == NULL ? NULL : device->start, 0);
}

int $name_state_read($name_device *device, uint8_t *state) { return aglow_move_state(device, state, 1); }

int $name_state_write($name_device *device, const uint8_t *state) {
  return aglow_move_state(device, (uint8_t *)state, 0); /* only read */
}
)";
}

}  // namespace aglow::opencl
