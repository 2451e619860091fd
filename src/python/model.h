// A model as Python sees it: opened once, compiled for the sizes it meets, run by any number of threads.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "compile/compile.h"

namespace aglow::python {

// An input or output, as the model declares it.
struct Spec {
  enum class Form : uint8_t { Tensor, Sequence, Optional, OptionalSequence };
  std::string name;
  Form form = Form::Tensor;
  std::optional<ElemKind> kind;  // none where the element type is not supported
  std::string type;              // "f32[batch,3]"
  bool ranked = true;
  std::vector<onnx::Dim> dims;
  bool hasDefault = false;
};

class Model {
public:
  // Takes the model, or (where there is none) the text form in the file.
  static Diagnosed<std::unique_ptr<Model>> open(std::optional<onnx::Model> model, std::string path,
                                                CompileOptions options, BackendOptions backend);

  const std::vector<Spec>& inputs() const { return inputs_; }
  const std::vector<Spec>& outputs() const { return outputs_; }

  // The model's outputs in its order.
  Diagnosed<std::vector<ModelValue>> run(const std::map<std::string, ModelValue>& given);
  // The text of what a phase or pass left; `onProgram` says which of the two IRs is asked for.
  Diagnosed<std::string> text(CompileOptions options, bool onProgram) const;
  const CompileOptions& options() const { return options_; }

private:
  // The model for one set of types, and of values where those decide on shapes.
  struct Variant {
    std::map<std::string, ModelValue> given;  // types of all, values of the frozen
    Interface interface;
    std::unique_ptr<Executable> executable;
    std::mutex running;
  };

  Diagnosed<Compilation> compile(const CompileOptions& options) const;
  Diagnosed<std::shared_ptr<Variant>> variantFor(const std::map<std::string, ModelValue>& given);
  Diagnosed<std::shared_ptr<Variant>> build(const std::map<std::string, ModelValue>& given) const;

  std::optional<onnx::Model> model_;
  std::string path_;
  CompileOptions options_;
  BackendOptions backend_;
  std::vector<Spec> inputs_, outputs_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Variant>> variants_;  // used last first
};

}  // namespace aglow::python
