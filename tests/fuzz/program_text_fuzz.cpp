// Any bytes, read as the text of a program: an error, or a program that round-trips and that the verifier and the
// memory passes take or refuse without a fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "inst/dot.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/pass_table.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aglow;
  auto programs = parsePrograms({reinterpret_cast<const char*>(data), size});
  if (!programs.ok()) {
    require(programs.error().code == Code::BadText && !programs.error().where.empty());
    return 0;
  }
  BlobStore store;
  const auto again = parsePrograms(print(*programs, &store), store);
  require(again.ok() && *again == *programs);
  if (!verify(std::span<const Program>(*programs)).ok()) return 0;
  require(!drawDot(*programs).empty());
  for (Program& program : *programs) {
    const Status placed = runMemoryPasses(program);
    require(placed.ok() ? verify(program).ok() : placed.error().code == Code::TooLarge);
  }
  return 0;
}
