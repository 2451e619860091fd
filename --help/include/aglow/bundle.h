/* What a bundle says of itself (NAME_info in its object, aglow_bundle_info in its shared object), and a small loader of
 * shared objects. Plain C99 or C++ in this one header; the loader is there where AGLOW_BUNDLE_LOADER is defined before
 * the header is included, and needs POSIX with dlopen. It keeps copies of both files, so that nobody who changes them
 * later changes what runs; AGLOW_BUNDLE_IN_PLACE has the code loaded from where it is, for debuggers.
 *
 *   aglow_bundle *bundle;
 *   const char *fault = aglow_bundle_open("out/model.so", "out/model.weights.bin", &bundle);
 *   aglow_bundle_context *context = aglow_bundle_context_new(bundle, 0);
 *   memcpy(aglow_bundle_input(context, 0), image, context->entry->inputs[0].bytes);
 *   int status = aglow_bundle_run(context);
 *   const float *answer = aglow_bundle_output(context, 0);
 */
#ifndef AGLOW_BUNDLE_H
#define AGLOW_BUNDLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An input or output. */
typedef struct aglow_bundle_tensor {
  const char* name; /* the model's */
  const char* kind; /* of its elements: "f32" */
  const char* type; /* "f32[1,3,224,224]", with scales where it is quantized */
  int64_t rank;
  const int64_t* dims;
  int64_t offset; /* in mutable memory */
  int64_t bytes;
} aglow_bundle_tensor;

/* How a host spreads work over threads: run() calls step(addresses, from, to) for parts that cover begin to end, on any
 * threads (`threads` are worth their while), returns when all are done, and gives the largest of their results. */
typedef int32_t aglow_bundle_step(void* const* addresses, int64_t begin, int64_t end);
typedef struct aglow_bundle_parallel_for {
  int32_t (*run)(void* context, aglow_bundle_step* step, void* const* addresses, int64_t begin, int64_t end,
                 int32_t threads);
  void* context;
} aglow_bundle_parallel_for;

/* One function of the model, for one set of sizes. State is null for bundles that have none. */
typedef struct aglow_bundle_entry {
  const char* name;
  int (*run)(const uint8_t* constants, uint8_t* mutableMem, uint8_t* activations, uint8_t* state);
  /* Null unless the bundle was made with --threads. */
  int (*parallel)(const uint8_t* constants, uint8_t* mutableMem, uint8_t* activations, uint8_t* state,
                  const aglow_bundle_parallel_for*);
  int64_t mutable_bytes;
  int64_t activation_bytes;
  int64_t input_count;
  const aglow_bundle_tensor* inputs;
  int64_t output_count;
  const aglow_bundle_tensor* outputs;
} aglow_bundle_entry;

#define AGLOW_BUNDLE_LAYOUT 2
#define AGLOW_BUNDLE_ALIGNMENT 64

typedef struct aglow_bundle_info {
  int64_t layout; /* AGLOW_BUNDLE_LAYOUT */
  const char* name;
  const char* version;
  const char* target;
  const char* cpu;
  const char* features;
  uint64_t weights_hash;
  int64_t constant_bytes;
  int (*check)(const uint8_t* constants);
  int64_t entry_count;
  const aglow_bundle_entry* entries;
  int64_t state_bytes; /* 0: there is no state */
  int64_t state_count;
  const aglow_bundle_tensor* states;                           /* their offsets are in the state's memory */
  int (*state_init)(const uint8_t* constants, uint8_t* state); /* writes the initial values; null without state */
} aglow_bundle_info;

#ifdef __cplusplus
}
#endif

#ifdef AGLOW_BUNDLE_LOADER

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

typedef struct aglow_bundle {
  const aglow_bundle_info* info;
  const uint8_t* constants;
  uint8_t* state; /* null where there is none; begins with the initial values */
  void* library;
  int copy; /* the file that the library was loaded from, or -1 */
} aglow_bundle;

/* Memory for one run at a time of one entry. Contexts of the same bundle share its weights and its state; those that
 * change the state take turns. */
typedef struct aglow_bundle_context {
  const aglow_bundle* bundle;
  const aglow_bundle_entry* entry;
  uint8_t* mutable_memory;
  uint8_t* activations;
} aglow_bundle_context;

static inline void aglow_bundle_close(aglow_bundle* bundle) {
  if (bundle == NULL) return;
  free((void*)bundle->constants);
  if (bundle->library != NULL) dlclose(bundle->library);
  if (bundle->copy >= 0) close(bundle->copy);
  free(bundle->state);
  free(bundle);
}

static inline const char* aglow_bundle_state_(aglow_bundle* bundle) {
  void* state = NULL;
  if (bundle->info->state_bytes == 0) return NULL;
  if (posix_memalign(&state, AGLOW_BUNDLE_ALIGNMENT, (size_t)bundle->info->state_bytes) != 0) return "out of memory";
  bundle->state = (uint8_t*)state;
  return bundle->info->state_init(bundle->constants, bundle->state) == 0 ? NULL : "the state cannot be set up";
}

/* A regular file, or -1; a pipe does not block. */
static inline int aglow_bundle_open_file_(const char* path, int64_t* bytes) {
  struct stat about;
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return -1;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(file);
    return -1;
  }
  *bytes = (int64_t)about.st_size;
  return file;
}

/* Whether exactly `bytes` bytes come from the file. */
static inline int aglow_bundle_read_(int file, uint8_t* to, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t got = read(file, to, bytes < (1 << 30) ? (size_t)bytes : (size_t)1 << 30);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    to += got;
    bytes -= got;
  }
  return 1;
}

/* The weights are copied: a file that changes later changes nothing here. */
static inline const char* aglow_bundle_weights_(aglow_bundle* bundle, const char* path) {
  void* memory = NULL;
  int64_t bytes = 0;
  int whole;
  const int file = aglow_bundle_open_file_(path, &bytes);
  if (file < 0) return "the weights cannot be opened, or are not a regular file";
  if (bytes != bundle->info->constant_bytes) {
    close(file);
    return "the file of weights has another size";
  }
  if (posix_memalign(&memory, AGLOW_BUNDLE_ALIGNMENT, (size_t)bytes) != 0) {
    close(file);
    return "out of memory";
  }
  bundle->constants = (const uint8_t*)memory;
  whole = aglow_bundle_read_(file, (uint8_t*)memory, bytes);
  close(file);
  return whole ? NULL : "the weights cannot be read";
}

#if defined(SYS_memfd_create) && !defined(AGLOW_BUNDLE_IN_PLACE)
#ifndef __cplusplus
long syscall(long number, ...); /* the system's headers hide it from strict C */
#endif
/* Code is mapped by the system, so it is loaded from a copy in memory that no other program can reach. The copy stays
 * open: its number is a name that no other library has meanwhile. */
static inline const char* aglow_bundle_library_(aglow_bundle* bundle, const char* path) {
  static const unsigned kCloseOnExec = 1;
  char name[40], part[1 << 14];
  int64_t bytes = 0, done = 0;
  const int file = aglow_bundle_open_file_(path, &bytes);
  if (file < 0) return "the shared object cannot be opened, or is not a regular file";
  bundle->copy = (int)syscall(SYS_memfd_create, "aglow-bundle", kCloseOnExec);
  while (bundle->copy >= 0 && done < bytes) {
    const int64_t size = bytes - done < (int64_t)sizeof part ? bytes - done : (int64_t)sizeof part;
    if (!aglow_bundle_read_(file, (uint8_t*)part, size) || write(bundle->copy, part, (size_t)size) != (ssize_t)size)
      break;
    done += size;
  }
  close(file);
  if (bundle->copy < 0 || done < bytes) return "the shared object cannot be copied";
  snprintf(name, sizeof name, "/proc/self/fd/%d", bundle->copy);
  bundle->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return bundle->library != NULL ? NULL : dlerror();
}
#else
static inline const char* aglow_bundle_library_(aglow_bundle* bundle, const char* path) {
  int64_t bytes = 0;
  const int file = aglow_bundle_open_file_(path, &bytes);
  if (file < 0) return "the shared object cannot be opened, or is not a regular file";
  close(file);
  bundle->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return bundle->library != NULL ? NULL : dlerror();
}
#endif

/* Loads and checks; gives null, or what is wrong. */
static inline const char* aglow_bundle_open(const char* library, const char* weights, aglow_bundle** result) {
  static const char* const kFaults[] = {"", "", "the weights are not aligned", "this processor lacks instructions",
                                        "the weights are not those the code was made for"};
  const char* fault;
  int status;
  aglow_bundle* bundle = (aglow_bundle*)calloc(1, sizeof *bundle);
  *result = NULL;
  if (bundle == NULL) return "out of memory";
  bundle->copy = -1;
  fault = aglow_bundle_library_(bundle, library);
  if (fault == NULL) {
    bundle->info = (const aglow_bundle_info*)dlsym(bundle->library, "aglow_bundle_info");
    if (bundle->info == NULL || bundle->info->layout != AGLOW_BUNDLE_LAYOUT)
      fault = "the shared object holds no bundle that this loader knows";
  }
  if (fault == NULL) fault = aglow_bundle_weights_(bundle, weights);
  if (fault == NULL) {
    status = bundle->info->check(bundle->constants);
    if (status != 0) fault = status < 5 ? kFaults[status] : "the bundle refuses to run";
  }
  if (fault == NULL) fault = aglow_bundle_state_(bundle);
  if (fault != NULL) {
    aglow_bundle_close(bundle);
    return fault;
  }
  *result = bundle;
  return NULL;
}

static inline void aglow_bundle_context_free(aglow_bundle_context* context) {
  if (context == NULL) return;
  free(context->mutable_memory);
  free(context->activations);
  free(context);
}

/* Null without memory, or without such an entry. */
static inline aglow_bundle_context* aglow_bundle_context_new(const aglow_bundle* bundle, int64_t entry) {
  void *io = NULL, *work = NULL;
  aglow_bundle_context* context;
  if (entry < 0 || entry >= bundle->info->entry_count) return NULL;
  context = (aglow_bundle_context*)calloc(1, sizeof *context);
  if (context == NULL) return NULL;
  context->bundle = bundle;
  context->entry = &bundle->info->entries[entry];
  if (posix_memalign(&io, AGLOW_BUNDLE_ALIGNMENT, (size_t)context->entry->mutable_bytes) == 0)
    context->mutable_memory = (uint8_t*)io;
  if (posix_memalign(&work, AGLOW_BUNDLE_ALIGNMENT, (size_t)context->entry->activation_bytes) == 0)
    context->activations = (uint8_t*)work;
  if (context->mutable_memory == NULL || context->activations == NULL) {
    aglow_bundle_context_free(context);
    return NULL;
  }
  return context;
}

static inline void* aglow_bundle_input(aglow_bundle_context* context, int64_t i) {
  return context->mutable_memory + context->entry->inputs[i].offset;
}
static inline void* aglow_bundle_output(aglow_bundle_context* context, int64_t i) {
  return context->mutable_memory + context->entry->outputs[i].offset;
}

/* The number of an entry by its name, or -1. */
static inline int64_t aglow_bundle_find(const aglow_bundle* bundle, const char* name) {
  int64_t i;
  for (i = 0; i < bundle->info->entry_count; ++i)
    if (strcmp(bundle->info->entries[i].name, name) == 0) return i;
  return -1;
}

/* The bytes of a part of the state, as info->states lists them. */
static inline void* aglow_bundle_state(const aglow_bundle* bundle, int64_t i) {
  return bundle->state + bundle->info->states[i].offset;
}

/* 0, or a code as the bundle's header explains it. */
static inline int aglow_bundle_run(aglow_bundle_context* context) {
  return context->entry->run(context->bundle->constants, context->mutable_memory, context->activations,
                             context->bundle->state);
}

#endif
#endif
