// Tensor data kept in files beside the model. Only regular files below the model's folder are ever used, and no link
// of any sort is followed unless whoever asks for the model says so; every refusal is BadExternalData.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "import/onnx/proto.h"
#include "support/file.h"
#include "support/fork.h"

namespace aglow::onnx {

class ExternalFiles {
public:
  // Who resolves a path below the folder: the kernel (openat2), or this program one component at a time, as it must
  // where the kernel cannot. Both accept the same paths.
  enum class Lookup : uint8_t { Kernel, Components };

  explicit ExternalFiles(const std::string& folder, Lookup lookup = Lookup::Kernel);

  // From now on names below the folder may be links, also to files elsewhere: caches of models keep them so.
  void followLinks() { followsLinks_ = true; }

  // Bytes of one of the files, as they were when the file was first opened.
  struct Part {
    std::shared_ptr<const InputFile> file;
    int64_t offset = 0;
    int64_t bytes = 0;
    std::string place;

    Status read(std::span<std::byte> to) const;
  };

  // The bytes that a tensor's external_data entries name; there must be exactly as many as expected.
  Result<Part> find(const StringPairs& entries, int64_t expected);

private:
  Result<std::shared_ptr<const InputFile>> open(const std::string& location);

  FileDescriptor folder_;
  Lookup lookup_;
  bool followsLinks_ = false;
  WholeMutex mutex_;
  struct Known {
    InputFile::Stamp stamp;
    std::shared_ptr<const InputFile> file;  // none where too many are open
  };
  std::map<std::string, Known> files_;
  size_t open_ = 0;
};

}  // namespace aglow::onnx
