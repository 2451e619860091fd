// What backends share: binding of tensors to placeholders, and the check of a program's memory against the limit.
#include "backends/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>

#include "graph/interface.h"
#include "support/machine.h"
#include "support/quote.h"
#include "support/sizes.h"
#include "support/thread_pool.h"

namespace aglow {

namespace {

std::string listOf(std::span<const Binding> bindings) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(bindings.size(), kShown); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(bindings[i].name), bindings[i].type.text());
  if (bindings.size() > kShown) text += fmt::format(" and {} more", bindings.size() - kShown);
  return text.empty() ? "nothing" : text;
}

Status checkType(const Binding& binding, const TensorRef& tensor, std::string_view what) {
  const auto fault = [&](std::string message) {
    return Error{.code = Code::BadBinding,
                 .message = std::move(message),
                 .where = fmt::format("{} {}", what, quoted(binding.name))};
  };
  const bool given = tensor.type != nullptr && (tensor.data != nullptr || tensor.type->bytes() == 0);
  if (!given || *tensor.type != binding.type)
    return fault(fmt::format("expected {}, got {}", binding.type.text(), given ? tensor.type->text() : "nothing"));
  const auto unit = static_cast<uintptr_t>(std::max<int64_t>(elemBytes(binding.type.kind()), 1));
  if (reinterpret_cast<uintptr_t>(tensor.data) % unit != 0)
    return fault(fmt::format("its address is not a multiple of {}, the size of an element", unit));
  return {};
}

std::vector<TensorRef> refsOf(std::span<const Tensor> tensors) {
  std::vector<TensorRef> refs;
  for (const Tensor& tensor : tensors) refs.push_back(tensor.empty() ? TensorRef{} : tensor.ref());
  return refs;
}

}  // namespace

Status checkBound(std::span<const Binding> bindings, std::span<const TensorRef> tensors, std::string_view what) {
  if (bindings.size() != tensors.size())
    return Error{.code = Code::BadBinding,
                 .message = fmt::format("expected {} {}s, got {}", bindings.size(), what, tensors.size()),
                 .hint = fmt::format("the program has {}", listOf(bindings))};
  for (size_t i = 0; i < bindings.size(); ++i) AGLOW_OK(checkType(bindings[i], tensors[i], what));
  return {};
}

Executable::Executable(std::span<const Program> programs, const RunLimits& limits)
    : state_(std::make_unique<State>(programs)),
      queue_(limits.queue),
      turnstile_(std::make_unique<Turnstile>(limits.contexts)),
      contexts_(turnstile_->places()) {
  for (const Program& program : programs) {
    functions_.push_back({.name = program.name,
                          .inputs = bindingsOf(program, program.inputs()),
                          .outputs = bindingsOf(program, program.outputs())});
    stateUses_.push_back(stateUse(program));
  }
}

RunContext& Executable::contextAt(size_t place) {
  std::unique_ptr<RunContext>& context = contexts_[place];
  if (context) return *context;
  std::unique_ptr<RunContext> made = makeContext();
  size_t in = 0, out = 0;
  for (const EntryPoint& function : functions_) {
    in = std::max(in, function.inputs.size());
    out = std::max(out, function.outputs.size());
  }
  made->inputs.resize(in);
  made->outputs.resize(out);
  context = std::move(made);
  return *context;
}

Result<size_t> Executable::find(std::string_view name) const {
  std::vector<std::string> names;
  for (const EntryPoint& function : functions_) names.push_back(function.name);
  return chooseFunction(names, name);
}

Result<std::unique_ptr<Executable>> Backend::compile(Program program, const BackendOptions& options) const {
  std::vector<Program> programs;
  programs.push_back(std::move(program));
  return compile(std::move(programs), options);
}

Status Executable::run(std::span<const TensorRef> in, std::span<const TensorRef> out, RunObserver* observer,
                       size_t function) {
  AGLOW_CHECK(function < functions_.size(), "there is no such function");
  AGLOW_OK(checkBound(inputs(function), in, "input"));
  AGLOW_OK(checkBound(outputs(function), out, "output"));
  // State comes before a context: who waits for it has none that others could use.
  const SharedTurns::Turn state(state_->turns(), stateUses_[function], queue_);
  if (!state) return busy({turnstile_->places(), queue_});
  const Turn turn(*turnstile_, queue_);
  if (!turn) return busy({turnstile_->places(), queue_});
  try {
    RunContext& context = contextAt(turn.place());
    for (size_t i = 0; i < in.size(); ++i) context.inputs[i] = in[i].data;
    for (size_t i = 0; i < out.size(); ++i) context.outputs[i] = out[i].data;
    return execute(context, function, std::span(context.inputs).first(in.size()),
                   std::span(context.outputs).first(out.size()), observer);
  } catch (const std::bad_alloc&) {
    return Error{.code = Code::OutOfMemory, .message = "the memory of one more run cannot be allocated"};
  }
}

Result<std::vector<Tensor>> Executable::run(std::span<const Tensor> in, RunObserver* observer, size_t function) {
  try {
    std::vector<Tensor> results;
    std::vector<TensorRef> out;
    for (const Binding& binding : outputs(function)) {
      Tensor& result = results.emplace_back(binding.type);
      out.push_back({&binding.type, result.mutableData()});
    }
    AGLOW_OK(run(refsOf(in), out, observer, function));
    return results;
  } catch (const std::bad_alloc&) {
    return Error{.code = Code::OutOfMemory, .message = "the outputs cannot be allocated"};
  }
}

Result<std::vector<Tensor>> bindByName(std::span<const Binding> bindings, const std::map<std::string, Tensor>& named) {
  for (const auto& [name, tensor] : named) {
    const bool known = std::any_of(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.name == name; });
    if (!known)
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("there is no input {}", quoted(name)),
                   .hint = "the program takes " + listOf(bindings)};
  }
  std::vector<Tensor> tensors;
  for (const Binding& binding : bindings) {
    const auto it = named.find(binding.name);
    if (it == named.end())
      return Error{
          .code = Code::MissingBinding,
          .message = fmt::format("input {} of type {} was not given", quoted(binding.name), binding.type.text())};
    AGLOW_OK(checkType(binding, it->second.empty() ? TensorRef{} : it->second.ref(), "input"));
    tensors.push_back(it->second);
  }
  return tensors;
}

std::vector<Binding> bindingsOf(const Program& program, std::span<const RegionId> placeholders) {
  std::vector<Binding> bindings;
  for (const RegionId id : placeholders) bindings.push_back({program[id].name, program[id].type});
  return bindings;
}

int64_t arenaBytes(std::span<const Program> programs) {
  int64_t most = 0;
  for (const Program& program : programs) most = std::max(most, program.arenaBytes);
  return most;
}

Status checkMemory(std::span<const Program> programs, const BackendOptions& options, int64_t moreBytes) {
  const int64_t inner = arenaBytes(programs) + moreBytes;
  int64_t declared = 0;
  for (const Region* region : sharedRegions(programs))
    declared = checkedAdd(declared, region->type.bytes()).value_or(std::numeric_limits<int64_t>::max());
  const auto needed = checkedAdd(inner, declared);
  if (options.memoryLimit <= 0 || (needed && *needed <= options.memoryLimit)) return {};
  return Error{.code = Code::TooLarge,
               .message = fmt::format("{} bytes are needed ({} for intermediate results, {} for constants, inputs and "
                                      "outputs), {} are allowed",
                                      needed ? fmt::to_string(*needed) : "more than 2^63", inner, declared,
                                      options.memoryLimit)};
}

RunLimits runLimits(std::span<const Program> programs, const BackendOptions& options, int64_t moreBytes) {
  RunLimits limits{.contexts = static_cast<size_t>(options.contexts > 0 ? options.contexts : defaultContexts()),
                   .queue = static_cast<size_t>(std::max(options.queue, 0))};
  if (options.memoryLimit <= 0) return limits;
  // Within the limit, as was checked, so nothing overflows.
  int64_t once = 0, each = arenaBytes(programs) + moreBytes;
  for (const Region* region : sharedRegions(programs))
    (region->as<PlaceholderInit>() != nullptr ? each : once) += region->type.bytes();
  if (each > 0) limits.contexts = std::min(limits.contexts, static_cast<size_t>((options.memoryLimit - once) / each));
  return limits;
}

Error busy(const RunLimits& limits) {
  return {.code = Code::Busy,
          .message =
              fmt::format("{} callers wait already, where {} runs may go side by side", limits.queue, limits.contexts)};
}

// One that waits for a processor is there when one comes free: to wake a caller that waits for a turn takes longer.
std::shared_ptr<ThreadPool> BackendOptions::threadPool() const {
  return pool ? pool : ThreadPool::ofProcess(std::max(threads, 1));
}

int defaultContexts() { return std::min(2 * machineThreads(), kMaxContexts); }

Status checkContexts(int contexts, int queue) {
  if (contexts < 0 || contexts > kMaxContexts)
    return Error{.code = Code::Usage,
                 .message = fmt::format("contexts are {}; expected 1 to {}, or 0 for two per processor", contexts,
                                        kMaxContexts)};
  if (queue < 0)
    return Error{.code = Code::Usage, .message = fmt::format("the queue is {}; expected how many may wait", queue)};
  return {};
}

}  // namespace aglow
