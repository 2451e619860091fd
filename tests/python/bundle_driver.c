/* Runs any bundle: driver ENTRY WEIGHTS INPUT... writes out0.bin, out1.bin, ... Compiled with BUNDLE as the bundle's
 * name. Prints the results of the check and of the run, and the number of allocations that the run made. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aglow/bundle.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern const aglow_bundle_info JOIN(BUNDLE, _info);

static int allocations = 0;
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* old, size_t bytes);
void* __wrap_malloc(size_t bytes);
void* __wrap_calloc(size_t count, size_t bytes);
void* __wrap_realloc(void* old, size_t bytes);
void* __wrap_malloc(size_t bytes) {
  ++allocations;
  return __real_malloc(bytes);
}
void* __wrap_calloc(size_t count, size_t bytes) {
  ++allocations;
  return __real_calloc(count, bytes);
}
void* __wrap_realloc(void* old, size_t bytes) {
  ++allocations;
  return __real_realloc(old, bytes);
}

/* The bytes after the memory must stay as they are. */
enum { kGuard = 256, kMark = 0xA5 };

static uint8_t* guarded(int64_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, AGLOW_BUNDLE_ALIGNMENT, (size_t)bytes + kGuard) != 0) exit(10);
  memset(memory, kMark, (size_t)bytes + kGuard);
  return (uint8_t*)memory;
}

static void checkGuard(const uint8_t* memory, int64_t bytes) {
  int i;
  for (i = 0; i < kGuard; ++i)
    if (memory[bytes + i] != kMark) exit(11);
}

static void readFile(const char* path, uint8_t* to, int64_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fread(to, 1, (size_t)bytes, file) != (size_t)bytes || fgetc(file) != EOF) exit(12);
  fclose(file);
}

/* Calls every unit on its own, last first: results must not depend on how work is dealt out. */
static int32_t backwards(void* context, aglow_bundle_step* step, void* const* addresses, int64_t begin,
                         int64_t end, int32_t threads) {
  int32_t worst = 0;
  (void)threads;
  *(int64_t*)context += end - begin;
  for (; end > begin; --end) {
    const int32_t status = step(addresses, end - 1, end);
    if (status > worst) worst = status;
  }
  return worst;
}

int main(int count, char** words) {
  const aglow_bundle_info* info = &JOIN(BUNDLE, _info);
  const aglow_bundle_entry* entry;
  uint8_t *constants, *memory, *activations;
  int64_t i, units = 0;
  int status, before;
  aglow_bundle_parallel_for parallel;
  if (count < 3) return 13;
  entry = &info->entries[atoi(words[1])];
  if (count != 3 + entry->input_count) return 14;
  constants = guarded(info->constant_bytes);
  memory = guarded(entry->mutable_bytes);
  activations = guarded(entry->activation_bytes);
  readFile(words[2], constants, info->constant_bytes);
  status = info->check(constants);
  printf("check %d\n", status);
  if (status != 0) return 0;
  for (i = 0; i < entry->input_count; ++i)
    readFile(words[3 + i], memory + entry->inputs[i].offset, entry->inputs[i].bytes);
  before = allocations;
  parallel.run = backwards;
  parallel.context = &units;
  status = entry->parallel != NULL ? entry->parallel(constants, memory, activations, NULL, &parallel)
                                   : entry->run(constants, memory, activations, NULL);
  printf("run %d\nallocations %d\nunits %" PRId64 "\n", status, allocations - before, units);
  checkGuard(constants, info->constant_bytes);
  checkGuard(memory, entry->mutable_bytes);
  checkGuard(activations, entry->activation_bytes);
  for (i = 0; i < entry->output_count; ++i) {
    char name[32];
    FILE* file;
    snprintf(name, sizeof name, "out%d.bin", (int)i);
    file = fopen(name, "wb");
    if (file == NULL) return 15;
    fwrite(memory + entry->outputs[i].offset, 1, (size_t)entry->outputs[i].bytes, file);
    fclose(file);
  }
  free(constants);
  free(memory);
  free(activations);
  return 0;
}
