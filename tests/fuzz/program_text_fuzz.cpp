// Any bytes, read as the text of a program: an error, or a program that round-trips and that the verifier and the
// memory passes take or refuse without a fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "inst/dot.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/plan.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aglow;
  auto program = parseProgram({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) {
    require(program.error().code == Code::BadText && !program.error().where.empty());
    return 0;
  }
  BlobStore store;
  const auto again = parseProgram(print(*program, &store), store);
  require(again.ok() && *again == *program);
  if (!verify(*program).ok()) return 0;
  require(!drawDot(*program).empty());
  const Status planned = planMemory(*program);
  require(planned.ok() ? verify(*program).ok() : planned.error().code == Code::TooLarge);
  return 0;
}
