/* Uses the C interface as a program would, right and wrong, on one model; the exit code is the last status.
 *
 *   api MODE MODEL SEED BACKEND [NAME=VALUE]...
 *
 * MODE is load, memory, session, session-memory or bundle (MODEL is then a shared object with M.weights.bin beside it).
 * NAME=VALUE: dim.NAME=N, shape.INPUT=1x2, threads=N, limit=BYTES, cache=DIR, and for sessions input.NAME=KIND:1x2.
 * Exit code 70: the interface broke its own word. */
#define AGLOW_BUNDLE_LOADER
#include <stdio.h>
#include <string.h>

#include "aglow/aglow.h"
#include "aglow/bundle.h"

enum { kBroken = 70, kRank = 64, kInputs = 64 };

static uint64_t state;
static uint64_t draw(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

static int broken(const char* what) {
  fprintf(stderr, "broken: %s\n", what);
  return kBroken;
}

static int failed(aglow_status status) {
  const char* text = aglow_error_text();
  if (status < 1 || status > 8 || status == 5) return broken("a status that there is not");
  if (text[0] == 0) return broken("a failure without a message");
  fprintf(stderr, "%s\n", text);
  return (int)status;
}

static size_t sizeOf(int kind) {
  switch (kind) {
    case AGLOW_FLOAT64:
    case AGLOW_INT64:
    case AGLOW_UINT64:
    case AGLOW_STRING: /* a pointer */
      return 8;
    case AGLOW_FLOAT32:
    case AGLOW_INT32:
    case AGLOW_UINT32:
      return 4;
    case AGLOW_FLOAT16:
    case AGLOW_BFLOAT16:
    case AGLOW_INT16:
    case AGLOW_UINT16:
      return 2;
    default:
      return 1;
  }
}

static void fill(void* data, size_t bytes, int kind) {
  static const float odd[] = {0.0f, -0.0f, 1e30f, -1e-40f, 1.0f / 0.0f, 0.0f / 0.0f};
  static const char* const words[] = {"", "a", "\xc3\xa9 b", "\xff"};
  uint8_t* at = (uint8_t*)data;
  size_t i;
  for (i = 0; i < bytes; ++i) at[i] = kind == AGLOW_BOOL ? (uint8_t)(draw() & 1) : (uint8_t)draw();
  if (kind == AGLOW_FLOAT32)
    for (i = 0; i + 4 <= bytes; i += 4) {
      const float v = draw() % 16 == 0 ? odd[draw() % 6] : (float)(draw() % 2048) / 1024.0f - 1.0f;
      memcpy(at + i, &v, 4);
    }
  if (kind == AGLOW_STRING)
    for (i = 0; i + sizeof(char*) <= bytes; i += sizeof(char*)) memcpy(at + i, &words[draw() % 4], sizeof(char*));
  if (kind == AGLOW_INT64 && draw() % 4 != 0)
    for (i = 0; i + 8 <= bytes; i += 8) {
      const int64_t v = (int64_t)(draw() % 6) - 1;
      memcpy(at + i, &v, 8);
    }
}

static void* readFile(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  void* bytes = NULL;
  long end;
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  end = ftell(file);
  rewind(file);
  bytes = malloc(end > 0 ? (size_t)end : 1);
  *size = bytes != NULL ? fread(bytes, 1, (size_t)end, file) : 0;
  fclose(file);
  return bytes;
}

static size_t parseDims(const char* text, int64_t* dims) {
  size_t rank = 0;
  char* end = NULL;
  while (*text != 0 && rank < kRank) {
    dims[rank++] = strtoll(text, &end, 10);
    if (end == text) break;
    text = *end == 'x' ? end + 1 : end;
  }
  return rank;
}

typedef struct Words {
  int count;
  char** at;
} Words;

static aglow_status setOption(aglow_options* options, const char* name, const char* value) {
  int64_t dims[kRank];
  if (strncmp(name, "dim.", 4) == 0) return aglow_options_set_dim(options, name + 4, strtoll(value, NULL, 10));
  if (strncmp(name, "prepare.", 8) == 0)
    return aglow_options_prepare(options, name + 8, dims, parseDims(value, dims));
  if (strncmp(name, "shape.", 6) == 0) return aglow_options_set_shape(options, name + 6, dims, parseDims(value, dims));
  if (strcmp(name, "threads") == 0) return aglow_options_set_threads(options, (int)strtoll(value, NULL, 10));
  if (strcmp(name, "limit") == 0) return aglow_options_set_memory_limit(options, strtoll(value, NULL, 10));
  if (strcmp(name, "cache") == 0) return aglow_options_set_cache(options, value);
  if (strcmp(name, "pad") == 0) return aglow_options_set_padding(options, 1);
  return AGLOW_OK;
}

static aglow_status setOptions(aglow_options* options, const char* backend, Words words) {
  aglow_status status = aglow_options_set_backend(options, backend);
  int i;
  for (i = 0; i < words.count && status == AGLOW_OK; ++i) {
    char* equals = strrchr(words.at[i], '=');
    if (equals == NULL || strncmp(words.at[i], "input.", 6) == 0) continue;
    *equals = 0;
    status = setOption(options, words.at[i], equals + 1);
    *equals = '=';
  }
  return status;
}

/* What must be refused, whatever the model is. */
static int misuse(aglow_model* model) {
  static char place[8];
  const size_t inputs = aglow_num_inputs(model), outputs = aglow_num_outputs(model);
  if (aglow_input(model, inputs) != NULL) return broken("an input too many");
  if (aglow_output(model, outputs + 7) != NULL) return broken("an output too many");
  if (aglow_find_input(model, "no such input?") != -1) return broken("an input that there is not");
  if (aglow_bind_input(model, inputs, place, 8) != AGLOW_USAGE) return broken("bound an input too many");
  if (aglow_bind_output(model, outputs, place, 8) != AGLOW_USAGE) return broken("bound an output too many");
  if (inputs + outputs > 0 && aglow_run(model) != AGLOW_USAGE) return broken("ran without memory");
  if (inputs > 0 && aglow_bind_input(model, 0, place, aglow_input(model, 0)->bytes + 1) != AGLOW_USAGE)
    return broken("bound an input of another size");
  return 0;
}

static void* memoryFor(const aglow_tensor_info* info) { return calloc(info->bytes > 0 ? info->bytes : 1, 1); }

/* Two runs on the same inputs give the same bits. */
static int runModel(aglow_model* model) {
  aglow_status status = AGLOW_OK;
  size_t i;
  int round, code = draw() % 2 == 0 ? misuse(model) : 0;
  const size_t outputs = aglow_num_outputs(model);
  void** results = (void**)calloc(2 * outputs + 1, sizeof *results);
  if (code != 0) return code;
  for (i = 0; i < aglow_num_inputs(model) && status == AGLOW_OK; ++i) {
    const aglow_tensor_info* info = aglow_input(model, i);
    void* data = memoryFor(info);
    if (data == NULL) return 0; /* there is no memory for it here */
    fill(data, info->bytes, (int)info->kind);
    if (aglow_find_input(model, info->name) != (int)i) return broken("an input that is not found by its name");
    status = aglow_bind_input(model, i, data, info->bytes);
  }
  for (round = 0; round < 2 && status == AGLOW_OK; ++round) {
    for (i = 0; i < outputs && status == AGLOW_OK; ++i) {
      const aglow_tensor_info* info = aglow_output(model, i);
      void* data = results[(size_t)round * outputs + i] = memoryFor(info);
      if (data == NULL) return 0;
      status = aglow_bind_output(model, i, data, info->bytes);
    }
    if (status == AGLOW_OK) status = aglow_run(model);
  }
  if (status != AGLOW_OK) return failed(status);
  for (i = 0; i < outputs; ++i)
    if (memcmp(results[i], results[outputs + i], aglow_output(model, i)->bytes) != 0)
      return broken("two runs give different bits");
  return 0;
}

static int runSession(aglow_session* session, Words words) {
  static int64_t dims[kInputs][kRank];
  aglow_tensor inputs[kInputs];
  aglow_results* results = NULL;
  aglow_status status;
  size_t count = 0, i, k;
  int w;
  for (w = 0; w < words.count && count < kInputs; ++w) {
    char *equals = strrchr(words.at[w], '='), *colon = NULL;
    aglow_tensor* tensor = &inputs[count];
    size_t bytes;
    if (equals == NULL || strncmp(words.at[w], "input.", 6) != 0) continue;
    *equals = 0;
    colon = strchr(equals + 1, ':');
    tensor->name = words.at[w] + 6;
    tensor->kind = (aglow_kind)atoi(equals + 1);
    tensor->rank = colon != NULL ? parseDims(colon + 1, dims[count]) : 0;
    tensor->dims = dims[count];
    bytes = sizeOf((int)tensor->kind);
    for (k = 0; k < tensor->rank; ++k) bytes *= dims[count][k] > 0 ? (size_t)dims[count][k] : 0;
    if (bytes > 1u << 26) return 0;
    tensor->data = malloc(bytes > 0 ? bytes : 1);
    fill((void*)tensor->data, bytes, (int)tensor->kind);
    ++count;
  }
  status = aglow_session_run(session, inputs, count, &results);
  if (status != AGLOW_OK) return failed(status);
  for (i = 0; i < aglow_results_count(results); ++i) {
    const aglow_tensor* one = aglow_results_get(results, i);
    if (one == NULL || one->name == NULL) return broken("a result without a name");
    printf("%s kind %d rank %zu\n", one->name, (int)one->kind, one->rank);
  }
  if (aglow_results_get(results, aglow_results_count(results)) != NULL) return broken("a result too many");
  aglow_results_free(results);
  return 0;
}

static int runBundle(const char* path) {
  char weights[4096];
  const size_t stem = strlen(path) > 3 ? strlen(path) - 3 : 0;
  aglow_bundle* bundle = NULL;
  const char* fault;
  int64_t entry, i;
  snprintf(weights, sizeof weights, "%.*s.weights.bin", (int)stem, path);
  fault = aglow_bundle_open(path, weights, &bundle);
  if (fault != NULL) {
    fprintf(stderr, "refused: %s\n", fault);
    return 8;
  }
  for (entry = 0; entry < bundle->info->entry_count; ++entry) {
    aglow_bundle_context* context = aglow_bundle_context_new(bundle, entry);
    if (context == NULL) continue;
    for (i = 0; i < context->entry->input_count; ++i)
      memset(aglow_bundle_input(context, i), (int)(draw() % 2), (size_t)context->entry->inputs[i].bytes);
    printf("entry %d: status %d\n", (int)entry, aglow_bundle_run(context));
    aglow_bundle_context_free(context);
  }
  aglow_bundle_close(bundle);
  return 0;
}

int apiDriverMain(int argc, char** argv) {
  Words words = {argc > 5 ? argc - 5 : 0, argv + 5};
  aglow_options* options = aglow_options_new();
  aglow_model* model = NULL;
  aglow_session* session = NULL;
  aglow_status status;
  void* bytes = NULL;
  size_t size = 0;
  int code = 0;
  if (argc < 5) return broken("too few words");
  state = strtoull(argv[3], NULL, 10);
  if (strcmp(argv[1], "bundle") == 0) return runBundle(argv[2]);
  if (strstr(argv[1], "memory") != NULL && (bytes = readFile(argv[2], &size)) == NULL) return 8;
  status = setOptions(options, argv[4], words);
  if (status != AGLOW_OK) return failed(status);
  if (strcmp(argv[1], "load") == 0) status = aglow_load(argv[2], options, &model);
  if (strcmp(argv[1], "memory") == 0) status = aglow_load_memory(bytes, size, options, &model);
  if (strcmp(argv[1], "session") == 0) status = aglow_session_open(argv[2], options, &session);
  if (strcmp(argv[1], "session-memory") == 0) status = aglow_session_open_memory(bytes, size, options, &session);
  aglow_options_free(options);
  code = status != AGLOW_OK ? failed(status) : model != NULL ? runModel(model) : runSession(session, words);
  aglow_free(model);
  aglow_session_close(session);
  return code;
}
