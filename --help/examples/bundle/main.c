/* Recognises handwritten digits with a compiled model and the C library alone: main digits.weights.bin IMAGE.npy... */
#include <stdio.h>

#include "digits.h"

static _Alignas(DIGITS_ALIGNMENT) uint8_t weights[DIGITS_CONSTANTS_BYTES];
static _Alignas(DIGITS_ALIGNMENT) uint8_t memory[DIGITS_MUTABLE_BYTES];
static _Alignas(DIGITS_ALIGNMENT) uint8_t activations[DIGITS_ACTIVATIONS_BYTES];

/* The last bytes of a file: all of the weights, and what follows the header of an image. */
static int readTail(const char* path, void* to, long bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return 0;
  const int done = fseek(file, -bytes, SEEK_END) == 0 && fread(to, 1, (size_t)bytes, file) == (size_t)bytes;
  fclose(file);
  return done;
}

int main(int count, char** words) {
  if (count < 2 || !readTail(words[1], weights, sizeof weights) || digits_check(weights) != DIGITS_OK) return 1;
  for (int i = 2; i < count; ++i) {
    if (!readTail(words[i], DIGITS_IMAGE(memory), DIGITS_IMAGE_BYTES)) return 2;
    if (digits(weights, memory, activations) != DIGITS_OK) return 3;
    const float* answer = DIGITS_PROBABILITIES(memory);
    int best = 0;
    for (int digit = 1; digit < 10; ++digit) best = answer[digit] > answer[best] ? digit : best;
    printf("%d %.1f\n", best, 100 * answer[best]);
  }
  return 0;
}
