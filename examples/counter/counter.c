/* The counter in C: counter_c counter.graph. Functions are selected by name, the state can be read and set. */
#include <aglow/aglow.h>
#include <stdio.h>

static aglow_status show(aglow_model* model) {
  float count = 0;
  const aglow_status status = aglow_get_state(model, 0, &count, sizeof(count));
  if (status == AGLOW_OK) printf("%s is %g\n", aglow_state(model, 0)->name, count);
  return status;
}

static aglow_status play(aglow_model* model) {
  const float step = 2, other = 40;
  float total = 0;
  aglow_status status = aglow_select(model, "add");
  if (status == AGLOW_OK) status = aglow_bind_input(model, 0, &step, sizeof(step));
  if (status == AGLOW_OK) status = aglow_bind_output(model, 0, &total, sizeof(total));
  if (status == AGLOW_OK) status = aglow_run(model);
  if (status == AGLOW_OK) status = aglow_run(model);
  if (status == AGLOW_OK) printf("add gives %g\n", total);
  if (status == AGLOW_OK) status = show(model);
  if (status == AGLOW_OK) status = aglow_set_state(model, 0, &other, sizeof(other));
  if (status == AGLOW_OK) status = aglow_run(model);
  if (status == AGLOW_OK) printf("add gives %g\n", total);
  if (status == AGLOW_OK) status = aglow_select(model, "reset");
  if (status == AGLOW_OK) status = aglow_run(model);
  if (status == AGLOW_OK) status = show(model);
  return status;
}

int main(int count, char** words) {
  aglow_model* model = NULL;
  aglow_status status = AGLOW_USAGE;
  if (count == 2) {
    status = aglow_load(words[1], NULL, &model);
    if (status == AGLOW_OK) status = play(model);
    if (status != AGLOW_OK) fprintf(stderr, "%s\n", aglow_error_text());
    aglow_free(model);
  }
  return (int)status;
}
