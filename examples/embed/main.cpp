// Recognises handwritten digits with the C++ interface: embed_cpp MODEL.onnx IMAGE.npy...
#include <aglow/aglow.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <vector>

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "usage: %s MODEL.onnx IMAGE.npy...\n", argv[0]), 1;
  aglow::Model model(argv[1], aglow::Options().threads(1));
  std::vector<float> image(model.inputs().at(0).elements()), scores(model.outputs().at(0).elements());
  // Bound once: each run reads and writes these vectors where they lie.
  model.bindInput(0, image.data(), image.size());
  model.bindOutput(0, scores.data(), scores.size());
  for (int i = 2; i < argc; ++i) {
    // The data of a .npy file stand at its end.
    std::ifstream file(argv[i], std::ios::binary);
    const auto bytes = static_cast<std::streamsize>(model.inputs()[0].bytes);
    if (!file.seekg(-bytes, std::ios::end) || !file.read(reinterpret_cast<char*>(image.data()), bytes))
      return std::fprintf(stderr, "%s is not an image for this model\n", argv[i]), 1;
    model.run();
    const auto best = std::max_element(scores.begin(), scores.end());
    std::printf("%s: %d (%.1f %%)\n", model.outputs()[0].name.c_str(), static_cast<int>(best - scores.begin()),
                100 * static_cast<double>(*best));
  }
  return 0;
} catch (const std::exception& fault) {
  std::fprintf(stderr, "%s\n", fault.what());
  return 2;
}
