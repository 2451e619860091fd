// LLVM inside of a library: what it takes for the end of the process is an error here.
#pragma once

#include <llvm/IR/LLVMContext.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "support/error.h"

namespace aglow::codegen {

// Runs a body that uses LLVM. What LLVM calls fatal ends the body, and is the error UnsupportedCode; an allocation
// of LLVM's that fails throws std::bad_alloc, as allocations elsewhere do. In both cases LLVM has not tidied up.
Status guarded(const std::function<Status()>& body);

// What LLVM says of a fault: OutOfMemory where that is what it means, the given code otherwise.
Error llvmError(std::string message, Code code);

// Owns an object of LLVM's, and abandons it when an exception passes: LLVM cleans nothing up on the way, so what it was
// at work on is in no state to be destroyed. What is lost is memory, after a fault.
template <class T>
class Abandoned {
public:
  explicit Abandoned(std::unique_ptr<T> object) : object_(std::move(object)) {}
  Abandoned(Abandoned&&) noexcept = default;
  ~Abandoned() {
    if (std::uncaught_exceptions() > exceptions_) (void)object_.release();
  }

  T& operator*() const { return *object_; }
  T* operator->() const { return object_.get(); }
  std::unique_ptr<T> take() { return std::move(object_); }

private:
  std::unique_ptr<T> object_;
  int exceptions_ = std::uncaught_exceptions();
};

// A context whose diagnostics are kept: what LLVM finds wrong and goes on, without a word on standard error.
class QuietContext {
public:
  QuietContext();

  llvm::LLVMContext& operator*() const { return *context_; }
  // UnsupportedCode where LLVM has found a fault.
  Status status() const;

private:
  std::shared_ptr<std::string> fault_ = std::make_shared<std::string>();
  Abandoned<llvm::LLVMContext> context_;
};

}  // namespace aglow::codegen
