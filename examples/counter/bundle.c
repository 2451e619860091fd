/* The counter as a bundle: functions of a C program, and state in its memory. No library, no file: weights are C. */
#include <stdio.h>

#include "counter.h"

static _Alignas(COUNTER_ALIGNMENT) uint8_t state[COUNTER_STATE_BYTES];
static _Alignas(COUNTER_ALIGNMENT) uint8_t memory[COUNTER_ADD_MUTABLE_BYTES];
static _Alignas(COUNTER_ALIGNMENT) uint8_t activations[COUNTER_ADD_ACTIVATIONS_BYTES];

int main(void) {
  if (counter_check(counter_weights) != COUNTER_OK) return 1;
  if (counter_state_init(counter_weights, state) != COUNTER_OK) return 1;
  *COUNTER_ADD_STEP(memory) = 2;
  if (counter_add(counter_weights, memory, activations, state) != COUNTER_OK) return 1;
  if (counter_add(counter_weights, memory, activations, state) != COUNTER_OK) return 1;
  printf("add gives %g\ncount is %g\n", *COUNTER_ADD_TOTAL(memory), *COUNTER_STATE_COUNT(state));
  *COUNTER_STATE_COUNT(state) = 40;
  if (counter_add(counter_weights, memory, activations, state) != COUNTER_OK) return 1;
  printf("add gives %g\n", *COUNTER_ADD_TOTAL(memory));
  if (counter_reset(counter_weights, memory, activations, state) != COUNTER_OK) return 1;
  printf("count is %g\n", *COUNTER_STATE_COUNT(state));
  return 0;
}
