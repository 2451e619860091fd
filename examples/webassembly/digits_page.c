/* What the page calls: memory for one image and its answer, and a run. */
#include "digits.h"

#define EXPORT(name) __attribute__((export_name(name)))

static uint8_t memory[DIGITS_MUTABLE_BYTES] __attribute__((aligned(DIGITS_ALIGNMENT)));
static uint8_t activations[DIGITS_ACTIVATIONS_BYTES] __attribute__((aligned(DIGITS_ALIGNMENT)));

EXPORT("check") int check(void) { return digits_check(digits_weights); }
EXPORT("image") float *image(void) { return DIGITS_IMAGE(memory); }
EXPORT("probabilities") const float *probabilities(void) { return DIGITS_PROBABILITIES(memory); }
EXPORT("run") int run(void) { return digits(digits_weights, memory, activations); }
