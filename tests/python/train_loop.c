/* A device that learns, with nothing but a bundle: train_loop WEIGHTS X TARGET BATCHES STEPS RATE takes steps with one
 * batch after the other and prints the loss of each; then the loss that evaluate() gives for each batch, and what
 * main() gives for the first, all with their bits. The three functions work on one state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steps.h"

#define ALIGNED __attribute__((aligned(STEPS_ALIGNMENT)))

static uint8_t constants[STEPS_CONSTANTS_BYTES] ALIGNED, state[STEPS_STATE_BYTES] ALIGNED;
static uint8_t train[STEPS_TRAIN_MUTABLE_BYTES] ALIGNED, evaluate[STEPS_EVALUATE_MUTABLE_BYTES] ALIGNED;
static uint8_t predict[STEPS_MAIN__MUTABLE_BYTES] ALIGNED, training[STEPS_TRAIN_ACTIVATIONS_BYTES] ALIGNED;
static uint8_t evaluating[STEPS_EVALUATE_ACTIVATIONS_BYTES] ALIGNED, predicting[STEPS_MAIN__ACTIVATIONS_BYTES] ALIGNED;

static void readPart(const char* path, int part, void* to, size_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, (long)bytes * part, SEEK_SET) != 0 || fread(to, bytes, 1, file) != 1) exit(10);
  fclose(file);
}

static void done(int status) {
  if (status != STEPS_OK) exit(20 + STEPS_STATUS(status));
}

int main(int count, char** words) {
  int i, batches, steps;
  if (count != 7) return 1;
  batches = atoi(words[4]);
  steps = atoi(words[5]);
  readPart(words[1], 0, constants, sizeof constants);
  done(steps_check(constants));
  done(steps_state_init(constants, state));
  *STEPS_TRAIN_RATE(train) = (float)atof(words[6]);
  for (i = 0; i < STEPS_TRAIN_WEIGHTS_ELEMENTS; ++i)
    STEPS_TRAIN_WEIGHTS(train)[i] = STEPS_EVALUATE_WEIGHTS(evaluate)[i] = 1.0F / STEPS_TRAIN_WEIGHTS_ELEMENTS;
  for (i = 0; i < steps; ++i) {
    readPart(words[2], i % batches, STEPS_TRAIN_X(train), STEPS_TRAIN_X_BYTES);
    readPart(words[3], i % batches, STEPS_TRAIN_TARGET_2(train), STEPS_TRAIN_TARGET_2_BYTES);
    done(steps_train(constants, train, training, state));
    printf("step %a\n", (double)*STEPS_TRAIN_LOSS(train));
  }
  for (i = 0; i < batches; ++i) {
    readPart(words[2], i, STEPS_EVALUATE_X(evaluate), STEPS_EVALUATE_X_BYTES);
    readPart(words[3], i, STEPS_EVALUATE_TARGET_2(evaluate), STEPS_EVALUATE_TARGET_2_BYTES);
    done(steps_evaluate(constants, evaluate, evaluating, state));
    printf("evaluate %a\n", (double)*STEPS_EVALUATE_LOSS(evaluate));
  }
  readPart(words[2], 0, STEPS_MAIN__X(predict), STEPS_MAIN__X_BYTES);
  done(steps_main_(constants, predict, predicting, state));
  for (i = 0; i < STEPS_MAIN__Y_ELEMENTS; ++i) printf("main %a\n", (double)STEPS_MAIN__Y(predict)[i]);
  return 0;
}
