// ORC's JIT, which links object files into the process.
#include "codegen/llvm/jit.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

namespace aglow::codegen {

struct JitCode::State {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

JitCode::JitCode() = default;
JitCode::JitCode(JitCode&&) noexcept = default;
JitCode::~JitCode() = default;

static Error jitError(llvm::Error error) {
  return {.code = Code::Device, .message = "generated code cannot be loaded: " + llvm::toString(std::move(error))};
}

Result<JitCode> JitCode::load(const std::string& object, const std::string& name) {
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return jitError(jit.takeError());
  JitCode code;
  code.state_ = std::make_unique<State>();
  code.state_->jit = std::move(*jit);
  llvm::orc::LLJIT& lljit = *code.state_->jit;
  if (auto error = lljit.addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, name)))
    return jitError(std::move(error));
  auto symbol = lljit.lookup(name);
  if (!symbol) return jitError(symbol.takeError());
  code.entry_ = symbol->toPtr<Entry*>();
  return code;
}

}  // namespace aglow::codegen
