#include "backends/opencl/kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/device/kept.h"
#include "backends/opencl/driver.h"
#include "codegen/clike/launch.h"

namespace aglow::opencl {

namespace {

std::string optionsFor(const Device& device) {
  std::string options = "-w -cl-std=CL1.2";
  if (device.exactQuotients) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (device.ptx) options += " -DPTX";
  if (device.computesPairs()) options += " -DPAIRS";
  return options;
}

// The program of a call, built; else the compiler's words.
Result<OwnBuilt> built(const Device& device, const char* call, Built handle, int32_t number, std::string& log) {
  const Api& api = *device.api;
  AGLOW_TRY(OwnBuilt program, owned<OwnBuilt>(api, call, handle, number));
  number = api.BuildProgram(program.get(), 1, &device.id, optionsFor(device).c_str(), nullptr, nullptr);
  if (number == kSuccess) return program;
  size_t bytes = 0;
  if (api.GetProgramBuildInfo(program.get(), device.id, kBuildLog, 0, nullptr, &bytes) == kSuccess && bytes > 1) {
    log.resize(bytes);
    api.GetProgramBuildInfo(program.get(), device.id, kBuildLog, bytes, log.data(), nullptr);
    log.resize(log.find('\0') == std::string::npos ? bytes : log.find('\0'));
  }
  return fault("clBuildProgram", number);
}

Result<OwnBuilt> fromSource(const Device& device, Context context, const std::string& source, std::string& log) {
  int32_t number = kSuccess;
  const char* text = source.c_str();
  Built handle = device.api->CreateProgramWithSource(context, 1, &text, nullptr, &number);
  return built(device, "clCreateProgramWithSource", handle, number, log);
}

Result<OwnBuilt> fromBinary(const Device& device, Context context, const std::string& binary) {
  int32_t number = kSuccess, taken = kSuccess;
  const size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  Built handle = device.api->CreateProgramWithBinary(context, 1, &device.id, &bytes, &data, &taken, &number);
  std::string log;
  return built(device, "clCreateProgramWithBinary", handle, number == kSuccess ? taken : number, log);
}

// Empty where the driver does not give it.
std::string binaryOf(const Api& api, Built program) {
  size_t bytes = 0;
  if (api.GetProgramInfo(program, kProgramBinarySizes, sizeof bytes, &bytes, nullptr) != kSuccess) return {};
  std::string binary(bytes, '\0');
  char* place = binary.data();
  if (api.GetProgramInfo(program, kProgramBinaries, sizeof(char*), static_cast<void*>(&place), nullptr) != kSuccess)
    return {};
  return binary;
}

}  // namespace

bool takesPtx(const Device& device) {
  const auto ofVendor = [](const std::string& extension) { return extension.starts_with("cl_nv_"); };
  if (std::none_of(device.extensions.begin(), device.extensions.end(), ofVendor)) return false;
  const auto driver = Driver::of(device);
  if (!driver.ok()) return false;
  Device asked = device;
  asked.ptx = true;
  std::string log;
  return fromSource(asked, (*driver)->context(), codegen::openClPrelude() + codegen::ptxTrial(), log).ok();
}

device::SpirvTarget spirvTarget(const Device& device) {
  device::SpirvTarget target;
  if (device.computesPairs())
    target.macros.emplace_back("PAIRS");
  else
    target.extensions.emplace_back("cl_khr_fp64");
  const auto driver = Driver::of(device);
  if (!driver.ok()) return target;
  // Asked by kernels that are there or not: compilers of some drivers say on stderr what they do not like.
  constexpr const char* kMacros[] = {"FP_FAST_FMAF", "FP_FAST_FMA"};
  std::string text = "__kernel void trial() {}\n", log;
  for (const char* name : kMacros) text += fmt::format("#ifdef {0}\n__kernel void has_{0}() {{}}\n#endif\n", name);
  const Result<OwnBuilt> trial = fromSource(device, (*driver)->context(), text, log);
  if (!trial.ok()) return target;
  for (const char* name : kMacros) {
    int32_t number = kSuccess;
    Kernel kernel = device.api->CreateKernel(trial->get(), fmt::format("has_{}", name).c_str(), &number);
    if (owned<OwnKernel>(*device.api, "clCreateKernel", kernel, number).ok()) target.macros.emplace_back(name);
  }
  return target;
}

Status KernelSet::build(const Device& device, Context context, const std::string& cache) {
  device_ = device;
  if (count() == 0) return {};
  const std::string whole = source(codegen::openClPrelude());
  // Not of processors: PoCL builds kernels for their groups when they first run, keeps those itself, and gives away
  // only general ones, which are several times slower, and which it then takes for its own runs as well.
  const std::string folder = (device.type & kTypeCpu) != 0 ? std::string() : cache;
  const device::Kept kept(folder, PackageCache::kKernels, deviceIdentity(device),
                          fmt::format("{}\n{}", optionsFor(device), whole));
  if (const std::optional<std::string> binary = kept.find()) {
    Result<OwnBuilt> found = fromBinary(device, context, *binary);
    if (found.ok()) {
      program_ = *std::move(found);
      return {};
    }
    kept.remove();
  }
  std::string log;
  Result<OwnBuilt> all = fromSource(device, context, whole, log);
  if (!all.ok()) return blame(device, context, all.error(), log);
  program_ = *std::move(all);
  if (folder.empty()) return {};
  if (const std::string binary = binaryOf(*device.api, program_.get()); !binary.empty()) kept.keep(binary);
  return {};
}

// The first kernel that cannot be built alone, with its text.
Error KernelSet::blame(const Device& device, Context context, const Error& whole, const std::string& log) const {
  for (size_t i = 0; i < count(); ++i) {
    std::string words;
    const Result<OwnBuilt> one =
        fromSource(device, context, codegen::openClPrelude() + "\n#line 1 \"" + nameOf(i) + "\"\n" + text(i), words);
    if (!one.ok())
      return {.code = one.error().code,
              .message = fmt::format("the driver of {} cannot build a kernel: {}\n{}\n{}", device.name,
                                     one.error().message, words, device::excerpt(text(i), words)),
              .hint = words.find("error") == std::string::npos ? kWhyNoWords : ""};
  }
  return {.code = whole.code,
          .message = fmt::format("the driver of {} cannot build {} kernels together: {}\n{}", device.name, count(),
                                 whole.message, log)};
}

Result<OwnKernel> KernelSet::make(size_t number, size_t groupItems) const {
  const Api& api = *device_.api;
  int32_t status = kSuccess;
  Kernel handle = api.CreateKernel(program_.get(), nameOf(number).c_str(), &status);
  AGLOW_TRY(OwnKernel kernel, owned<OwnKernel>(api, "clCreateKernel", handle, status));
  const auto told = [&]<class T>(Info what, T unknown) {
    T answer = unknown;
    api.GetKernelWorkGroupInfo(handle, device_.id, what, sizeof answer, &answer, nullptr);
    return answer;
  };
  const auto refused = [&](uint64_t needed, const char* what, uint64_t has) {
    return Error{.code = Code::TooLarge,
                 .message = fmt::format("a kernel needs {} {}; the device {} ({}) has {} for it", needed, what,
                                        device_.address(), device_.name, has)};
  };
  // Mesa's rusticl tells how many items it steps through at once; what a kernel declares it runs all the same.
  if (const size_t most = told(kKernelGroupItems, groupItems); most < groupItems && device_.platformName != "rusticl")
    return refused(groupItems, "items in a group", most);
  if (const auto local = told(kKernelLocalMemory, uint64_t{0}); local > device_.localBytes)
    return refused(local, "bytes of local memory", device_.localBytes);
  return kernel;
}

}  // namespace aglow::opencl
