#include "train/source.h"

#include "compile/text_files.h"
#include "import/model_file.h"

namespace aglow {

Result<TrainingSource> readSource(const std::string& path, const std::string& initPath) {
  if (path.ends_with(".graph")) return TrainingSource{.path = path};
  if (isWhole(path))
    return Error{.code = Code::Usage,
                 .message = "it is compiled already: what is trained is a model, or a graph (.graph)",
                 .where = path};
  AGLOW_TRY(onnx::Model model, readModelFile(path, initPath));
  AGLOW_TRY(SharedBytes file, openFile(path));
  return TrainingSource{.path = path, .model = std::move(model), .file = std::move(file)};
}

Result<TrainingSource> parseSource(const SharedBytes& file, const SharedBytes* init) {
  AGLOW_TRY(onnx::Model model, parseModelFile(file, {}, init));
  return TrainingSource{.path = {}, .model = std::move(model), .file = file};
}

}  // namespace aglow
