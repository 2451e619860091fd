#include "backends/opencl/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/bundle/c_names.h"
#include "backends/device/bundle_tables.h"

namespace aglow::opencl {

namespace {

// A string for each line: compilers bound the length of one.
std::string kernelText(std::string_view source) {
  std::string text = "\nstatic const char *const aglow_kernel_text[] = {\n";
  for (size_t at = 0; at < source.size();) {
    const size_t end = std::min(source.find('\n', at), source.size() - 1) + 1;
    text += fmt::format("  {},\n", codegen::cString(source.substr(at, end - at)));
    at = end;
  }
  return text + "};\n";
}

// The module as numbers, which are the same in any order of bytes.
std::string spirvWords(std::string_view spirv, const device::SpirvTarget& target) {
  std::string text = fmt::format("\nenum {{ AGLOW_SPIRV_F64 = {:d} }};\nstatic const cl_uint aglow_kernel_words[] = {{",
                                 !target.extensions.empty());
  for (size_t at = 0; at < spirv.size(); at += sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, spirv.data() + at, sizeof word);
    text += fmt::format("{}{:#x},", at % 64 == 0 ? "\n  " : " ", word);
  }
  return text + "\n};\n" + bundleSpirv();
}

// With the bundle's name in it.
std::string named(const char* text, const std::string& bundle) {
  return device::replaced(device::replaced(text, "$name", bundle), "$NAME", codegen::upperCase(bundle));
}

}  // namespace

Result<BundleFiles> bundleFiles(const codegen::Bundle& bundle, const codegen::DeviceShape& shape, const Device& device,
                                const std::optional<device::SpirvTarget>& target) {
  device::BundleTables tables(bundle, shape, device.pairs);
  AGLOW_OK(tables.fit(device.limits()));
  BundleFiles files{.host = {}, .kernels = tables.kernels().source(codegen::openClPrelude()), .spirv = {}};
  if (target) {
    AGLOW_TRY(files.spirv, device::spirvOf(files.kernels, *target));
  }
  files.host = fmt::format(
      "/* {0}: runs on a device by OpenCL, compiled by Aglow {1}. Link with -lOpenCL. */\n#include \"{0}.h\"\n",
      bundle.name, AGLOW_VERSION);
  files.host += bundleIncludes();
  files.host += device::BundleTables::types();
  files.host += kernelText(files.kernels);
  files.host += target ? spirvWords(files.spirv, *target) : bundleSourceAlone();
  files.host += tables.text();
  files.host += named(bundleHost(), bundle.name);
  if (bundle.stateBytes > 0) files.host += named(bundleState(), bundle.name);
  for (size_t i = 0; i < bundle.entries.size(); ++i)
    files.host += fmt::format(
        "\nint {}({}_device *device, uint8_t *mutableMem) {{ return aglow_run(device, {}, mutableMem); }}\n",
        bundle.entries[i].name, bundle.name, i);
  return files;
}

}  // namespace aglow::opencl
