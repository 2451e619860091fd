#include "backends/cpu/llvm/library.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Attributes.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Target/TargetMachine.h>

// Begin and end of the bitcode, from cmake/kernel_library.cmake.
extern "C" const char aglow_kernel_library[], aglow_kernel_library_end[];

namespace aglow::codegen {

namespace {

std::unique_ptr<llvm::Module> readLibrary(llvm::LLVMContext& context) {
  const auto size = static_cast<size_t>(aglow_kernel_library_end - aglow_kernel_library);
  const llvm::MemoryBufferRef buffer(llvm::StringRef(aglow_kernel_library, size), "kernel library");
  auto library = llvm::getLazyBitcodeModule(buffer, context);
  AGLOW_CHECK(static_cast<bool>(library), "the kernel library cannot be read");
  return std::move(*library);
}

// Memory of a value in the function's entry block, so that loops do not grow the stack.
llvm::AllocaInst* stackSlot(llvm::IRBuilder<>& builder, llvm::Type* type) {
  llvm::BasicBlock& entry = builder.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  return atEntry.CreateAlloca(type);
}

}  // namespace

void setTargetAttributes(llvm::Function& function, const Target& target) {
  for (const char* name :
       {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width", "prefer-vector-width"})
    function.removeFnAttr(name);
  function.addFnAttr("target-cpu", target.cpu());
  function.addFnAttr("target-features", target.machine().getTargetFeatureString());
  // Without these LLVM halves vectors of 64 bytes on many processors.
  const std::string bits = std::to_string(target.shape().lanes * 32);
  function.addFnAttr("prefer-vector-width", bits);
  function.addFnAttr("min-legal-vector-width", bits);
  if (target.options().optSize) function.addFnAttr(llvm::Attribute::OptimizeForSize);
}

Library::Library(llvm::Module& module, const Target& target)
    : module_(module), target_(target), library_(readLibrary(module.getContext())) {
  library_->setTargetTriple(module.getTargetTriple());
  library_->setDataLayout(module.getDataLayout());
}

bool Library::has(const std::string& name) const { return library_->getFunction("aglow_" + name) != nullptr; }

llvm::Function* Library::find(const std::string& name) {
  const std::string symbol = "aglow_" + name;
  if (llvm::Function* known = module_.getFunction(symbol)) return known;
  const llvm::Function* source = library_->getFunction(symbol);
  AGLOW_CHECK(source != nullptr, "the kernel library has no function " + symbol);
  auto* function = llvm::Function::Create(source->getFunctionType(), llvm::Function::ExternalLinkage, symbol, module_);
  function->setAttributes(source->getAttributes());
  setTargetAttributes(*function, target_);
  return function;
}

llvm::Value* Library::call(llvm::IRBuilder<>& builder, const std::string& name, llvm::ArrayRef<llvm::Value*> arguments,
                           llvm::Type* result) {
  llvm::Function* function = find(name);
  std::vector<llvm::Value*> actual;
  llvm::AllocaInst* returned = nullptr;
  unsigned next = 0;
  if (function->hasStructRetAttr()) {
    returned = stackSlot(builder, result);
    actual.push_back(returned);
    next = 1;
  }
  for (llvm::Value* argument : arguments) {
    llvm::Type* wanted = function->getFunctionType()->getParamType(next++);
    if (wanted != argument->getType()) {
      if (wanted->isPointerTy()) {
        llvm::AllocaInst* slot = stackSlot(builder, argument->getType());
        builder.CreateStore(argument, slot);
        argument = slot;
      } else {
        argument = builder.CreateBitCast(argument, wanted);
      }
    }
    actual.push_back(argument);
  }
  llvm::CallInst* call = builder.CreateCall(function, actual);
  call->setAttributes(function->getAttributes());
  for (const char* attribute : {"target-cpu", "target-features"}) call->removeFnAttr(attribute);
  if (returned != nullptr) return builder.CreateLoad(result, returned);
  return call->getType() == result ? static_cast<llvm::Value*>(call) : builder.CreateBitCast(call, result);
}

void Library::link() {
  // Names of the module's own functions must not be taken for the library's.
  std::vector<std::string> needed, data;
  for (const llvm::Function& function : *library_) needed.push_back(function.getName().str());
  for (const llvm::GlobalVariable& global : library_->globals()) data.push_back(global.getName().str());
  const bool failed = llvm::Linker::linkModules(module_, library_.take(), llvm::Linker::Flags::LinkOnlyNeeded);
  AGLOW_CHECK(!failed, "the kernel library does not link");
  for (const std::string& name : data) {
    llvm::GlobalVariable* global = module_.getGlobalVariable(name);
    if (global == nullptr || global->isDeclaration()) continue;
    global->setLinkage(llvm::GlobalValue::InternalLinkage);
    global->setComdat(nullptr);
  }
  for (const std::string& name : needed) {
    llvm::Function* function = module_.getFunction(name);
    if (function == nullptr || function->isDeclaration()) continue;
    function->setLinkage(llvm::Function::InternalLinkage);
    function->setComdat(nullptr);
    setTargetAttributes(*function, target_);
    if (target_.options().optLevel > 0 && !function->hasFnAttribute(llvm::Attribute::NoInline))
      function->addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

}  // namespace aglow::codegen
