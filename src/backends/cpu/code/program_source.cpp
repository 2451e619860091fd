// The program of `--emit exe`, in C: finds what a bundle is by its description, and holds its weights.
#include "backends/cpu/code/link.h"

namespace aglow::codegen {

const char* programSource() {
  return R"source(
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern const aglow_bundle_info NAME_info;
extern const uint8_t aglow_weights[];

enum { USAGE = 1, VALUES = 2, MEMORY = 4, MACHINE = 6, FILES = 8 };

static void fail(int status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", NAME_info.name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(status);
}

static void help(void) {
  int64_t e, i;
  printf("Usage: %s [-o DIR] [NAME=]FILE.npy...\n\nReads a .npy file for each input, in order or by name, and writes "
         "DIR/0.npy, DIR/1.npy, ... (DIR: .).\n",
         NAME_info.name);
  for (e = 0; e < NAME_info.entry_count; ++e) {
    const aglow_bundle_entry *entry = &NAME_info.entries[e];
    printf("\n%s\n", entry->name);
    for (i = 0; i < entry->input_count; ++i) printf("  in   %s  %s\n", entry->inputs[i].name, entry->inputs[i].type);
    for (i = 0; i < entry->output_count; ++i) printf("  out  %s  %s\n", entry->outputs[i].name, entry->outputs[i].type);
  }
  printf("\nCompiled by Aglow %s for %s, %s.\n", NAME_info.version, NAME_info.target, NAME_info.cpu);
}

/* How numpy calls a kind; those that it lacks travel as their bits. */
static const char *numpy_kind(const char *kind) {
  static const char *const names[][2] = {{"f32", "<f4"}, {"f64", "<f8"}, {"f16", "<f2"}, {"bf16", "<u2"}, {"bool", "|b1"},
                                         {"i8", "|i1"},  {"i16", "<i2"}, {"i32", "<i4"}, {"i64", "<i8"},  {"u8", "|u1"},
                                         {"u16", "<u2"}, {"u32", "<u4"}, {"u64", "<u8"}, {"i4", "|i1"},   {"i2", "|i1"}};
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; ++i)
    if (strcmp(names[i][0], kind) == 0) return names[i][1];
  return "|u1";
}

static void *memory_of(int64_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, bytes > 0 ? (size_t)bytes : 64) != 0) fail(MEMORY, "no memory for %lld bytes", (long long)bytes);
  memset(memory, 0, bytes > 0 ? (size_t)bytes : 64);
  return memory;
}

/* A file in memory: its header as text, and where its elements begin. */
struct array {
  const char *name, *path;
  char *header;
  uint8_t *elements;
  size_t bytes;
};

static struct array read_array(const char *word) {
  struct array array = {NULL, word, NULL, NULL, 0};
  const char *equals = strrchr(word, '=');
  uint8_t begin[12];
  size_t header_at, header_bytes, room = 1 << 16, read;
  FILE *file;
  if (equals != NULL) {
    char *name = (char *)memory_of(equals - word + 1);
    memcpy(name, word, (size_t)(equals - word));
    array.name = name;
    array.path = equals + 1;
  }
  file = strcmp(array.path, "-") == 0 ? stdin : fopen(array.path, "rb");
  if (file == NULL) fail(FILES, "%s: %s", array.path, strerror(errno));
  if (fread(begin, 1, 10, file) != 10 || memcmp(begin, "\x93NUMPY", 6) != 0) fail(VALUES, "%s is no .npy file", array.path);
  header_bytes = begin[8] + 256u * begin[9];
  if (begin[6] >= 2) {
    if (fread(begin + 10, 1, 2, file) != 2) fail(VALUES, "%s is cut short", array.path);
    header_bytes += 65536u * begin[10] + 16777216u * (size_t)begin[11];
  }
  if (header_bytes > 1 << 20) fail(VALUES, "%s has a header of %zu bytes", array.path, header_bytes);
  array.header = (char *)memory_of((int64_t)header_bytes + 1);
  header_at = fread(array.header, 1, header_bytes, file);
  if (header_at != header_bytes) fail(VALUES, "%s is cut short", array.path);
  array.elements = (uint8_t *)malloc(room);
  while (array.elements != NULL && (read = fread(array.elements + array.bytes, 1, room - array.bytes, file)) > 0) {
    array.bytes += read;
    if (array.bytes == room) array.elements = (uint8_t *)realloc(array.elements, room *= 2);
  }
  if (array.elements == NULL) fail(MEMORY, "no memory for %s", array.path);
  if (ferror(file)) fail(FILES, "%s: %s", array.path, strerror(errno));
  if (file != stdin) fclose(file);
  return array;
}

/* What numpy writes of a tensor's shape: (1, 3) or (3,). */
static void shape_text(const aglow_bundle_tensor *tensor, char *text, size_t room) {
  int64_t i;
  size_t used = (size_t)snprintf(text, room, "(");
  for (i = 0; i < tensor->rank; ++i)
    used += (size_t)snprintf(text + used, room - used, "%s%lld%s", i > 0 ? ", " : "", (long long)tensor->dims[i],
                             tensor->rank == 1 ? "," : "");
  snprintf(text + used, room - used, ")");
}

/* What is wrong with an array for an input; null: nothing. */
static const char *unfit(const struct array *array, const aglow_bundle_tensor *tensor) {
  char shape[1024], wanted[1100];
  shape_text(tensor, shape, sizeof shape);
  snprintf(wanted, sizeof wanted, "'descr': '%s'", numpy_kind(tensor->kind));
  if (strstr(array->header, wanted) == NULL) return "has elements of another kind";
  if (tensor->rank > 1 && strstr(array->header, "'fortran_order': True") != NULL) return "is in Fortran order";
  snprintf(wanted, sizeof wanted, "'shape': %s", shape);
  if (strstr(array->header, wanted) == NULL) return "has another shape";
  return array->bytes == (size_t)tensor->bytes ? NULL : "is cut short, or too long";
}

static const struct array *array_for(const aglow_bundle_entry *entry, int64_t input, const struct array *arrays,
                                     int count) {
  int i;
  for (i = 0; i < count; ++i)
    if (arrays[i].name != NULL ? strcmp(arrays[i].name, entry->inputs[input].name) == 0 : i == input) return &arrays[i];
  return NULL;
}

static int fits(const aglow_bundle_entry *entry, const struct array *arrays, int count) {
  int64_t i;
  for (i = 0; i < entry->input_count; ++i) {
    const struct array *array = array_for(entry, i, arrays, count);
    if (array == NULL || unfit(array, &entry->inputs[i]) != NULL) return 0;
  }
  return count == entry->input_count;
}

static void explain(const aglow_bundle_entry *entry, const struct array *arrays, int count) {
  int64_t i;
  if (count != entry->input_count) fail(USAGE, "%d files for %lld inputs; --help lists them", count, (long long)entry->input_count);
  for (i = 0; i < entry->input_count; ++i) {
    const struct array *array = array_for(entry, i, arrays, count);
    if (array == NULL) fail(USAGE, "input '%s' is not given", entry->inputs[i].name);
    if (unfit(array, &entry->inputs[i]) != NULL)
      fail(VALUES, "%s %s: input '%s' is %s", array->path, unfit(array, &entry->inputs[i]), entry->inputs[i].name,
           entry->inputs[i].type);
  }
}

static void write_array(const char *folder, int64_t number, const aglow_bundle_tensor *tensor, const uint8_t *elements) {
  char path[4096], shape[1024], header[2048];
  size_t used, bytes;
  FILE *file;
  snprintf(path, sizeof path, "%s/%lld.npy", folder, (long long)number);
  shape_text(tensor, shape, sizeof shape);
  used = (size_t)snprintf(header + 10, sizeof header - 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                          numpy_kind(tensor->kind), shape);
  bytes = (10 + used + 1 + 63) / 64 * 64;
  memcpy(header, "\x93NUMPY\x01\x00", 8);
  header[8] = (char)((bytes - 10) % 256);
  header[9] = (char)((bytes - 10) / 256);
  memset(header + 10 + used, ' ', bytes - 10 - used);
  header[bytes - 1] = '\n';
  file = fopen(path, "wb");
  if (file == NULL || fwrite(header, 1, bytes, file) != bytes ||
      fwrite(elements, 1, (size_t)tensor->bytes, file) != (size_t)tensor->bytes || fclose(file) != 0)
    fail(FILES, "%s: %s", path, strerror(errno));
}

int main(int argc, char **argv) {
  const char *folder = ".";
  struct array *arrays = (struct array *)memory_of((int64_t)sizeof(struct array) * argc);
  const aglow_bundle_entry *entry = NULL;
  uint8_t *memory, *activations, *state;
  int count = 0, i, status;
  int64_t e;
  for (i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      help();
      return 0;
    }
    if ((strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output-dir") == 0) && i + 1 < argc)
      folder = argv[++i];
    else if ((strcmp(argv[i], "-i") == 0 || strcmp(argv[i], "--input") == 0) && i + 1 < argc)
      arrays[count++] = read_array(argv[++i]);
    else if (argv[i][0] == '-' && argv[i][1] != 0)
      fail(USAGE, "there is no option %s; --help lists what there is", argv[i]);
    else
      arrays[count++] = read_array(argv[i]);
  }
  status = NAME_info.check(aglow_weights);
  if (status != 0) fail(MACHINE, status == 3 ? "this processor lacks instructions that the code uses (%s)" : "the weights are damaged%.0s", NAME_info.features);
  for (e = 0; e < NAME_info.entry_count && entry == NULL; ++e)
    if (fits(&NAME_info.entries[e], arrays, count)) entry = &NAME_info.entries[e];
  if (entry == NULL) {
    explain(&NAME_info.entries[0], arrays, count);
    return VALUES;
  }
  memory = (uint8_t *)memory_of(entry->mutable_bytes);
  activations = (uint8_t *)memory_of(entry->activation_bytes);
  state = NAME_info.state_bytes > 0 ? (uint8_t *)memory_of(NAME_info.state_bytes) : NULL;
  if (state != NULL) NAME_info.state_init(aglow_weights, state);
  for (e = 0; e < entry->input_count; ++e)
    memcpy(memory + entry->inputs[e].offset, array_for(entry, e, arrays, count)->elements, (size_t)entry->inputs[e].bytes);
  status = entry->run(aglow_weights, memory, activations, state);
  if (status != 0) fail(VALUES, "an index lies outside of its axis (instruction %d)", status >> 4);
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) fail(FILES, "%s: %s", folder, strerror(errno));
  for (e = 0; e < entry->output_count; ++e) write_array(folder, e, &entry->outputs[e], memory + entry->outputs[e].offset);
  return 0;
}
)source";
}

}  // namespace aglow::codegen
