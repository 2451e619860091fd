/* Recognises a handwritten digit with the C interface: embed_c MODEL.onnx IMAGE.npy */
#include <aglow/aglow.h>
#include <stdio.h>

/* The data of a .npy file stand at its end. */
static int read_npy(const char* path, float* data, size_t bytes) {
  FILE* file = fopen(path, "rb");
  int done = file && fseek(file, -(long)bytes, SEEK_END) == 0 && fread(data, 1, bytes, file) == bytes;
  if (file) fclose(file);
  return done;
}

int main(int argc, char** argv) {
  static float image[8 * 8], scores[10];
  aglow_model* model = NULL;
  size_t i, best = 0;
  if (argc != 3) return fprintf(stderr, "usage: %s MODEL.onnx IMAGE.npy\n", argv[0]), 1;
  if (aglow_load(argv[1], NULL, &model) != AGLOW_OK) return fprintf(stderr, "%s\n", aglow_error_text()), 2;
  if (aglow_input(model, 0)->bytes > sizeof(image) || !read_npy(argv[2], image, aglow_input(model, 0)->bytes))
    return fprintf(stderr, "%s is not an image for this model\n", argv[2]), 1;

  /* The model reads and writes these arrays where they lie, in every run. */
  if (aglow_bind_input(model, 0, image, aglow_input(model, 0)->bytes) != AGLOW_OK ||
      aglow_bind_output(model, 0, scores, sizeof(scores)) != AGLOW_OK || aglow_run(model) != AGLOW_OK)
    return fprintf(stderr, "%s\n", aglow_error_text()), 3;

  for (i = 1; i < 10; ++i)
    if (scores[i] > scores[best]) best = i;
  printf("%s: %d (%.1f %%)\n", aglow_output(model, 0)->name, (int)best, 100 * scores[best]);
  aglow_free(model);
  return 0;
}
