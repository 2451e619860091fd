#include "backends/cpu/llvm/guard.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>

namespace aglow::codegen {

namespace {

thread_local int guards = 0;  // that this thread is inside of

// Whether LLVM has given up once: what it held then is lost.
std::atomic<bool> gaveUp = false;

class LlvmFault : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// Where memory is mapped instead of allocated, LLVM has only words for it.
bool saysOutOfMemory(std::string_view message) {
  return message.find("allocate") != std::string_view::npos || message.find("out of memory") != std::string_view::npos;
}

// Others in this process may use the same LLVM; then its own words stand, and its own end of the process follows.
void leaveToLlvm(const char* reason) {
  for (const char* text : {"LLVM ERROR: ", reason, "\n"})
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// The C library loads what it unwinds pthread_once with when the first exception leaves that, as LLVM's initializers
// may have to; it aborts without memory for it. So this happens now.
void loadUnwinder() {
  std::once_flag never;
  try {
    std::call_once(never, [] { throw std::bad_alloc(); });
  } catch (const std::bad_alloc&) {
    return;
  }
}

void installHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    loadUnwinder();
    llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
      gaveUp = true;
      if (guards > 0) throw LlvmFault(reason);
      leaveToLlvm(reason);
    });
    llvm::install_bad_alloc_error_handler([](void*, const char* reason, bool) {
      gaveUp = true;
      if (guards > 0) throw std::bad_alloc();
      leaveToLlvm(reason);
      std::abort();
    });
  });
}

void keepError(const llvm::DiagnosticInfo* info, void* fault) {
  auto& text = *static_cast<std::string*>(fault);
  if (info->getSeverity() != llvm::DS_Error || !text.empty()) return;
  llvm::raw_string_ostream stream(text);
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
}

}  // namespace

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// Asked by the leak check of sanitized programs.
extern "C" int __lsan_is_turned_off() { return gaveUp ? 1 : 0; }  // NOLINT(bugprone-reserved-identifier)
#endif
#endif

Error llvmError(std::string message, Code code) {
  return {.code = saysOutOfMemory(message) ? Code::OutOfMemory : code, .message = "LLVM: " + std::move(message)};
}

Status guarded(const std::function<Status()>& body) {
  installHandlers();
  struct Count {
    Count() { ++guards; }
    ~Count() { --guards; }
  } const count;
  try {
    return body();
  } catch (const LlvmFault& fault) {
    return llvmError(fault.what(), Code::UnsupportedCode);
  }
}

QuietContext::QuietContext() : context_(std::make_unique<llvm::LLVMContext>()) {
  context_->setDiagnosticHandlerCallBack(keepError, fault_.get());
}

Status QuietContext::status() const { return fault_->empty() ? Status() : llvmError(*fault_, Code::UnsupportedCode); }

}  // namespace aglow::codegen
