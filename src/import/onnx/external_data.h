// Tensor data kept in files beside the model. Only regular files below the model's folder are ever used, and no link
// of any sort is followed; every refusal is BadExternalData.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "import/onnx/proto.h"
#include "support/file.h"

namespace aglow::onnx {

class ExternalFiles {
public:
  // Who resolves a path below the folder: the kernel (openat2), or this program one component at a time, as it must
  // where the kernel cannot. Both accept the same paths.
  enum class Lookup : uint8_t { Kernel, Components };

  explicit ExternalFiles(const std::string& folder, Lookup lookup = Lookup::Kernel);

  // The bytes that a tensor's external_data entries name; there must be exactly as many as expected.
  Result<SharedBytes> find(const StringPairs& entries, int64_t expected);

private:
  Result<SharedBytes> map(const std::string& path);

  FileDescriptor folder_;
  Lookup lookup_;
  std::mutex mutex_;
  std::map<std::string, SharedBytes> mapped_;  // tensors of one file share its mapping
};

}  // namespace aglow::onnx
