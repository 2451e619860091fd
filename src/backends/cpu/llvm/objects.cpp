// Objects of a module's programs, written side by side: LLVM's contexts belong to one thread each, so the module
// travels as bitcode, and each part drops the steps that are not its own.
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <exception>

#include "backends/cpu/llvm/guard.h"
#include "backends/cpu/llvm/library.h"
#include "backends/cpu/llvm/module.h"
#include "backends/cpu/llvm/steps.h"

namespace aglow::codegen {

namespace {

bool isStep(const llvm::Function& function) {
  return !function.isDeclaration() && function.hasFnAttribute(kStepAttribute);
}

// All programs in one module, before the library's functions are linked to it.
struct Unlinked {
  std::string bitcode;
  int64_t steps = 0;
};

Result<Unlinked> emitPrograms(std::span<const Program> programs, std::span<const MemoryMap> memory,
                              const Target& target, const CodeOptions& options) {
  Unlinked result;
  AGLOW_OK(guarded([&] {
    const QuietContext context;
    (*context).setDiscardValueNames(true);  // nobody reads them
    const Abandoned<llvm::Module> module(newModule(*context, options.name, target));
    Library library(*module, target);
    for (size_t i = 0; i < programs.size(); ++i) {
      CodeOptions own = options;
      own.name = entryName(options, i);
      emitProgram(*module, library, programs[i], memory[i], target, own);
    }
    result.steps = std::count_if(module->begin(), module->end(), isStep);
    llvm::raw_string_ostream stream(result.bitcode);
    llvm::WriteBitcodeToFile(*module, stream);
    return context.status();
  }));
  return result;
}

// Leaves every `parts`-th step; the first part has the programs' own functions besides.
void keepPart(llvm::Module& module, int64_t part, int64_t parts) {
  int64_t number = 0;
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    if (isStep(function)) {
      function.setLinkage(llvm::Function::ExternalLinkage);
      if (number++ % parts != part) function.deleteBody();
    } else if (part != 0 && !function.hasLocalLinkage()) {
      function.deleteBody();
    }
  }
}

Status writePart(const std::string& bitcode, int64_t part, int64_t parts, const TargetOptions& options,
                 std::string& object) {
  return guarded([&]() -> Status {
    // Its own: LLVM's description of a target serves one thread at a time.
    AGLOW_TRY(const Target target, Target::create(options));
    const QuietContext context;
    (*context).setDiscardValueNames(true);  // nobody reads them
    auto read = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode, "programs"), *context);
    AGLOW_CHECK(static_cast<bool>(read), "the programs' own bitcode cannot be read");
    const Abandoned<llvm::Module> module(std::move(*read));
    keepPart(*module, part, parts);
    dropUnused(*module, target);
    checkModule(*module);
    Library(*module, target).link();
    optimizeModule(*module, target);
    object = writeObject(*module, target);
    return context.status();
  });
}

}  // namespace

Result<std::vector<std::string>> generateObjects(std::span<const Program> programs, std::span<const MemoryMap> memory,
                                                 const Target& target, const CodeOptions& options,
                                                 const SideBySide& sideBySide) {
  constexpr int64_t kStepsOfPart = 4, kMostParts = 16;
  AGLOW_TRY(const Unlinked all, emitPrograms(programs, memory, target, options));
  const int64_t parts = std::clamp<int64_t>(all.steps / kStepsOfPart, 1, kMostParts);
  std::vector<std::string> objects(static_cast<size_t>(parts));
  std::vector<Status> statuses(objects.size());
  std::vector<std::exception_ptr> thrown(objects.size());
  sideBySide(parts, [&](int64_t part) {
    const auto at = static_cast<size_t>(part);
    // What is thrown belongs to the caller.
    try {
      statuses[at] = writePart(all.bitcode, part, parts, target.options(), objects[at]);
    } catch (...) {
      thrown[at] = std::current_exception();
    }
  });
  for (const std::exception_ptr& exception : thrown)
    if (exception) std::rethrow_exception(exception);
  for (Status& status : statuses)
    if (!status.ok()) return std::move(status).error();
  return objects;
}

}  // namespace aglow::codegen
