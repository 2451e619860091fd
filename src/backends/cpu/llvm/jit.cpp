// ORC's JIT, which links object files into the process.
#include "backends/cpu/llvm/jit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <unistd.h>

#include "backends/cpu/llvm/guard.h"
#include "support/file.h"

namespace aglow::codegen {

static Error jitError(llvm::Error error) {
  return llvmError("generated code cannot be loaded: " + llvm::toString(std::move(error)), Code::Device);
}

namespace {

using llvm::orc::RTDyldObjectLinkingLayer;

// One line for each function: address, size, name. A profile without names is better than a failure.
void writePerfMap(const llvm::object::ObjectFile& object, const llvm::RuntimeDyld::LoadedObjectInfo& loaded) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) return;
  std::string lines;
  for (const llvm::object::SymbolRef& symbol : object.symbols()) {
    const auto type = llvm::expectedToOptional(symbol.getType());
    const auto section = llvm::expectedToOptional(symbol.getSection());
    const auto name = llvm::expectedToOptional(symbol.getName());
    const auto offset = llvm::expectedToOptional(symbol.getValue());
    if (type != llvm::object::SymbolRef::ST_Function || !section || !name || !offset) continue;
    lines += fmt::format("{:x} {:x} {}\n", loaded.getSectionLoadAddress(**section) + *offset,
                         llvm::object::ELFSymbolRef(symbol).getSize(), name->str());
  }
  if (::write(file.get(), lines.data(), lines.size()) < 0) return;
}

llvm::Expected<std::unique_ptr<llvm::orc::ObjectLayer>> makeNamingLayer(llvm::orc::ExecutionSession& session,
                                                                        const llvm::Triple&) {
  auto layer = std::make_unique<RTDyldObjectLinkingLayer>(
      session, [] { return std::make_unique<llvm::SectionMemoryManager>(); });
  layer->setNotifyLoaded([](llvm::orc::MaterializationResponsibility&, const llvm::object::ObjectFile& object,
                            const llvm::RuntimeDyld::LoadedObjectInfo& loaded) { writePerfMap(object, loaded); });
  return layer;
}

Status link(const std::vector<std::string>& objects, const std::vector<std::string>& names, bool named,
            LoadedCode& code) {
  llvm::orc::LLJITBuilder builder;
  if (named) builder.setObjectLinkingLayerCreator(makeNamingLayer);
  auto made = builder.create();
  if (!made) return jitError(made.takeError());
  Abandoned<llvm::orc::LLJIT> jit(std::move(*made));
  jit->getExecutionSession().setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  for (const std::string& object : objects)
    if (auto error = jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, names.front())))
      return jitError(std::move(error));
  for (const std::string& name : names) {
    auto symbol = jit->lookup(name);
    if (!symbol) return jitError(symbol.takeError());
    code.entries.push_back(symbol->toPtr<LoadedCode::Entry*>());
  }
  code.owner = jit.take();
  return {};
}

}  // namespace

Result<LoadedCode> loadObjects(const std::vector<std::string>& objects, const std::vector<std::string>& names,
                               bool named) {
  LoadedCode code;
  AGLOW_OK(guarded([&] { return link(objects, names, named, code); }));
  return code;
}

}  // namespace aglow::codegen
