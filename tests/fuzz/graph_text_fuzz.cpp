// Any bytes, read as the text of a graph: a module that verifies and round-trips, or an error. The same bytes are also
// read as a file of blobs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "graph/dot.h"
#include "graph/equality.h"
#include "graph/text.h"
#include "graph/verifier.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aglow;
  const auto bytes = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  const auto blobs = parseBlobs({std::as_bytes(std::span(*bytes)), bytes});
  require(blobs.ok() || blobs.error().code == Code::BadFile);

  const auto module = parseModule(*bytes);
  if (!module.ok()) {
    require(module.error().code == Code::BadText && !module.error().where.empty());
    return 0;
  }
  require(verify(**module).ok());
  BlobStore store;
  const std::string text = print(**module, &store);
  const auto again = parseModule(text, store);
  require(again.ok() && equal(**module, **again));
  require(!drawDot(**again).empty());
  return 0;
}
