/* Runs any bundle for devices: driver WEIGHTS CALLS INPUT..., with the macros BUNDLE (its name), HEADER, ENTRY (a
 * function), and MUTABLE_BYTES of it. The inputs are one file, the whole of mutableMem; after the calls it is written to
 * out.bin, and the state, where there is one, to state.bin. Prints the status of each call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include HEADER

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OWN(name) JOIN(BUNDLE, name)

static uint8_t *readFile(const char *path, size_t bytes) {
  uint8_t *memory = (uint8_t *)calloc(bytes + 1, 1);
  FILE *file = fopen(path, "rb");
  if (memory == NULL || file == NULL) exit(12);
  if (fread(memory, 1, bytes + 1, file) > bytes) exit(13);
  fclose(file);
  return memory;
}

static void writeFile(const char *path, const uint8_t *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes, 1, count, file) != count) exit(14);
  fclose(file);
}

int main(int count, char **words) {
  uint8_t *constants, *memory;
  OWN(_device) *device = NULL;
  int status, call;
  if (count != 4) return 11;
  if (OWN(_open)(NULL, NULL, &device) != 2 || strstr(OWN(_words)(device), "constants") == NULL) return 19;
  OWN(_close)(device);
  constants = readFile(words[1], CONSTANTS_BYTES);
  memory = readFile(words[3], MUTABLE_BYTES);
  status = OWN(_open)(getenv("DEVICE"), constants, &device);
  free(constants); /* not needed any more */
  printf("open %d\n", status);
  if (status != 0) puts(OWN(_words)(device));
  /* What did not open runs nothing. */
  if (ENTRY(device, status == 0 ? NULL : memory) != (status == 0 ? 2 : 3)) return 20;
  for (call = 0; call < atoi(words[2]) && status == 0; ++call) {
    const int result = ENTRY(device, memory);
    printf("run %d %d\n", result & 15, result >> 4);
    if (result != 0) puts(OWN(_words)(device));
  }
#ifdef STATE_BYTES
  if (status == 0) {
    uint8_t *state = (uint8_t *)calloc(STATE_BYTES, 1);
    if (OWN(_state_read)(device, state) != 0) return 15;
    writeFile("state.bin", state, STATE_BYTES);
    if (OWN(_state_init)(device) != 0) return 16;
    if (OWN(_state_write)(device, state) != 0) return 17;
    memset(state, 0, STATE_BYTES);
    if (OWN(_state_read)(device, state) != 0) return 18;
    writeFile("again.bin", state, STATE_BYTES);
    free(state);
  }
#endif
  writeFile("out.bin", memory, MUTABLE_BYTES);
  OWN(_close)(device);
  free(memory);
  return 0;
}
