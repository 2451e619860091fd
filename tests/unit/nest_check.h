// The nests of a program beside the interpreter: each is evaluated, and printed as C and compiled with cc; run on the
// operands of its instruction, both have to give what the reference kernels give.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/interpreter/interpreter.h"
#include "codegen/nest/nest.h"

namespace aglow::testing_support {

class NestCheck final : public RunObserver {
public:
  // The extents under which an epilogue walks over the anchor's result; none: its shape.
  using View = std::function<std::vector<int64_t>(const Instr& instr)>;

  // Prints and compiles. The executable outlives this, and is run with this as its observer. Results may differ by
  // what the kinds of values allow, unless they have to be exact; any NaN is as good as another.
  static Result<std::unique_ptr<NestCheck>> create(const InterpreterExecutable& executable, const View& view = {},
                                                   bool exact = false);
  ~NestCheck() override;

  void begin(size_t instr) override;
  void end(size_t instr) override;

  struct Counts {
    int loops = 0, reducing = 0, epilogues = 0;  // that ran
    std::vector<std::string> differences;
    Counts& operator+=(const Counts& other);
  };
  const Counts& counts() const { return counts_; }

private:
  using Function = int32_t(void* const*, int64_t, int64_t);
  struct Entry {
    nest::Nest nest;
    bool epilogue = false;
    std::string text;
    Function* function = nullptr;
  };
  using Bytes = std::vector<std::byte>;

  NestCheck(const InterpreterExecutable& executable, bool exact) : executable_(executable), exact_(exact) {}
  Status compile(const std::string& source);
  Bytes bytesOf(RegionId region) const;
  Bytes givenTo(const Instr& instr) const;
  bool isSkipped(const Instr& instr) const;
  using Runner = std::function<void(std::vector<std::byte*>& addresses)>;
  void compare(const Instr& instr, const Entry& entry, std::string_view way, const Runner& run);

  const InterpreterExecutable& executable_;
  bool exact_;
  std::vector<std::unique_ptr<Entry>> entries_;  // by instruction, null where it is not a nest
  void* library_ = nullptr;
  std::vector<Bytes> operands_;  // of the instruction that runs, as they were before
  Counts counts_;
};

}  // namespace aglow::testing_support
