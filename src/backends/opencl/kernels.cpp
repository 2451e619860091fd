#include "backends/opencl/kernels.h"

#include <fmt/format.h>

namespace aglow::opencl {

namespace {

std::string named(std::string text, const std::string& name) {
  const std::string_view placeholder = codegen::Launch::kName;
  for (size_t at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder, at))
    text.replace(at, placeholder.size(), name);
  return text;
}

}  // namespace

std::string KernelSet::nameOf(size_t number) { return fmt::format("kernel_{}", number); }

size_t KernelSet::add(const std::string& text) {
  const auto [it, isNew] = numbers_.try_emplace(text, texts_.size());
  if (isNew) texts_.push_back(text);
  return it->second;
}

Result<OwnBuilt> KernelSet::built(const Device& device, Context context, const std::string& source,
                                  std::string& log) const {
  const Api& api = *device.api;
  int32_t number = kSuccess;
  const char* text = source.c_str();
  Built handle = api.CreateProgramWithSource(context, 1, &text, nullptr, &number);
  AGLOW_TRY(OwnBuilt program, owned<OwnBuilt>(api, "clCreateProgramWithSource", handle, number));
  const char* options =
      device.exactQuotients ? "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" : "-w -cl-std=CL1.2";
  number = api.BuildProgram(program.get(), 1, &device.id, options, nullptr, nullptr);
  if (number == kSuccess) return program;
  size_t bytes = 0;
  if (api.GetProgramBuildInfo(program.get(), device.id, kBuildLog, 0, nullptr, &bytes) == kSuccess && bytes > 1) {
    log.resize(bytes);
    api.GetProgramBuildInfo(program.get(), device.id, kBuildLog, bytes, log.data(), nullptr);
    log.resize(log.find('\0') == std::string::npos ? bytes : log.find('\0'));
  }
  return fault("clBuildProgram", number);
}

Status KernelSet::build(const Device& device, Context context) {
  api_ = device.api;
  if (texts_.empty()) return {};
  const std::string prelude = codegen::openClPrelude();
  std::string source = prelude, log;
  for (size_t i = 0; i < texts_.size(); ++i) source += "\n" + named(texts_[i], nameOf(i));
  Result<OwnBuilt> all = built(device, context, source, log);
  if (all.ok()) {
    program_ = *std::move(all);
    return {};
  }
  // The one that is to blame, with its text.
  for (size_t i = 0; i < texts_.size(); ++i) {
    std::string words;
    const std::string text = named(texts_[i], nameOf(i));
    if (Result<OwnBuilt> one = built(device, context, prelude + "\n" + text, words); !one.ok())
      return Error{.code = one.error().code,
                   .message = fmt::format("the driver of {} cannot build a kernel: {}\n{}\n{}", device.name,
                                          one.error().message, words, text)};
  }
  return Error{.code = all.error().code,
               .message = fmt::format("the driver of {} cannot build {} kernels together: {}\n{}", device.name,
                                      texts_.size(), all.error().message, log)};
}

Result<OwnKernel> KernelSet::make(size_t number) const {
  int32_t status = kSuccess;
  Kernel handle = api_->CreateKernel(program_.get(), nameOf(number).c_str(), &status);
  return owned<OwnKernel>(*api_, "clCreateKernel", handle, status);
}

}  // namespace aglow::opencl
