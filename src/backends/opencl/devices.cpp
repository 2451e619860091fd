#include "backends/opencl/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <sstream>

#include "support/quote.h"
#include "support/utf8.h"

namespace aglow::opencl {

namespace {

// A text of the platform or device, which may say any bytes; what it does not tell stays empty.
template <class Call, class Of>
std::string textOf(Call call, Of of, Info what) {
  size_t bytes = 0;
  if (call(of, what, 0, nullptr, &bytes) != kSuccess || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (call(of, what, bytes, text.data(), nullptr) != kSuccess) return {};
  text.resize(text.find('\0') == std::string::npos ? bytes : text.find('\0'));
  text = printableUtf8(std::move(text));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

template <class T>
T numberOf(const Api& api, DeviceId id, Info what) {
  T value{};
  return api.GetDeviceInfo(id, what, sizeof value, &value, nullptr) == kSuccess ? value : T{};
}

// Each vendor has its own word for it, and Intel several sizes, of which the largest counts. None: 32, as most have.
uint32_t stepItemsOf(const Device& device) {
  static constexpr std::pair<const char*, Info> kWords[] = {
      {"cl_nv_device_attribute_query", kDeviceWarpOfNvidia},
      {"cl_amd_device_attribute_query", kDeviceWavefrontOfAmd},
      {"cl_intel_required_subgroup_size", kDeviceSubGroupsOfIntel},
  };
  for (const auto& [extension, word] : kWords) {
    std::array<size_t, 8> sizes{};
    if (!device.has(extension)) continue;
    if (const auto items = numberOf<uint32_t>(*device.api, device.id, word); items > 0) return items;
    if (device.api->GetDeviceInfo(device.id, word, sizeof sizes, sizes.data(), nullptr) == kSuccess)
      return std::max(static_cast<uint32_t>(*std::max_element(sizes.begin(), sizes.end())), uint32_t{1});
  }
  return 32;
}

Device describe(const Api& api, Platform platform, DeviceId id) {
  Device device{.api = &api, .platform = platform, .id = id};
  device.platformName = textOf(api.GetPlatformInfo, platform, kPlatformName);
  device.platformVersion = textOf(api.GetPlatformInfo, platform, kPlatformVersion);
  device.name = textOf(api.GetDeviceInfo, id, kDeviceName);
  device.vendor = textOf(api.GetDeviceInfo, id, kDeviceVendor);
  device.version = textOf(api.GetDeviceInfo, id, kDeviceVersion);
  device.driver = textOf(api.GetDeviceInfo, id, kDriverVersion);
  std::istringstream extensions(textOf(api.GetDeviceInfo, id, kDeviceExtensions));
  for (std::string word; extensions >> word;) device.extensions.push_back(word);
  device.il = textOf(api.GetDeviceInfo, id, kDeviceIlVersion);
  device.doubles = device.has("cl_khr_fp64");
  device.halves = device.has("cl_khr_fp16");
  device.exactQuotients = (numberOf<Bits>(api, id, kDeviceFloatConfig) & kExactQuotients) != 0;
  device.type = numberOf<Bits>(api, id, kDeviceType);
  device.available = numberOf<uint32_t>(api, id, kDeviceAvailable) != 0;
  device.unifiedMemory = numberOf<uint32_t>(api, id, kDeviceUnifiedMemory) != 0;
  device.computeUnits = numberOf<uint32_t>(api, id, kDeviceComputeUnits);
  device.clockMhz = numberOf<uint32_t>(api, id, kDeviceClock);
  device.globalBytes = numberOf<uint64_t>(api, id, kDeviceGlobalMemory);
  device.localBytes = numberOf<uint64_t>(api, id, kDeviceLocalMemory);
  device.allocationBytes = numberOf<uint64_t>(api, id, kDeviceMostAllocation);
  device.groupItems = std::max(numberOf<size_t>(api, id, kDeviceGroupItems), size_t{1});
  device.argumentBytes = std::max(numberOf<size_t>(api, id, kDeviceArgumentBytes), size_t{256});
  device.vectorFloats = std::max(numberOf<uint32_t>(api, id, kDevicePreferredFloats), uint32_t{1});
  device.stepItems = stepItemsOf(device);
  return device;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// A number, or a part of the name.
bool fits(std::string_view wanted, int number, const std::string& name) {
  if (wanted.empty()) return true;
  int value = 0;
  const auto [end, fault] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), value);
  if (fault == std::errc() && end == wanted.data() + wanted.size()) return value == number;
  return lower(name).find(lower(wanted)) != std::string::npos;
}

}  // namespace

std::string Device::address() const { return fmt::format("{}/{}", platformNumber, number); }

device::Limits Device::limits() const {
  return {.device = fmt::format("{} ({})", address(), name), .bufferBytes = allocationBytes, .allBytes = globalBytes};
}

bool Device::has(std::string_view extension) const {
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

std::string deviceIdentity(const Device& device) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", device.name, device.vendor, device.version, device.driver,
                     device.platformName, device.platformVersion);
}

Result<std::vector<Device>> devices() {
  AGLOW_TRY(const Api* api, openApi());
  uint32_t count = 0;
  const int32_t asked = api->GetPlatformIDs(0, nullptr, &count);
  if (asked == kPlatformNotFound || (asked == kSuccess && count == 0))
    return Error{.code = Code::Device,
                 .message = "OpenCL has no platform: its loader found no driver",
                 .hint =
                     "drivers are listed in /etc/OpenCL/vendors, or where OCL_ICD_VENDORS says; on Debian and "
                     "Ubuntu, pocl-opencl-icd is one for processors"};
  AGLOW_OK(statusOf("clGetPlatformIDs", asked));
  std::vector<Platform> platforms(count);
  AGLOW_OK(statusOf("clGetPlatformIDs", api->GetPlatformIDs(count, platforms.data(), nullptr)));
  std::vector<Device> found;
  for (uint32_t p = 0; p < count; ++p) {
    uint32_t number = 0;
    if (api->GetDeviceIDs(platforms[p], kAnyDevice, 0, nullptr, &number) != kSuccess || number == 0) continue;
    std::vector<DeviceId> ids(number);
    if (api->GetDeviceIDs(platforms[p], kAnyDevice, number, ids.data(), nullptr) != kSuccess) continue;
    for (uint32_t d = 0; d < number; ++d) {
      Device& device = found.emplace_back(describe(*api, platforms[p], ids[d]));
      device.platformNumber = static_cast<int>(p);
      device.number = static_cast<int>(d);
    }
  }
  return found;
}

Result<Device> chooseDevice(std::string_view choice) {
  AGLOW_TRY(const std::vector<Device> all, devices());
  const size_t slash = choice.find('/');
  const std::string_view platform = slash == std::string_view::npos ? std::string_view{} : choice.substr(0, slash);
  const std::string_view wanted = slash == std::string_view::npos ? choice : choice.substr(slash + 1);
  const Device* chosen = nullptr;
  for (const Device& device : all) {
    if (!device.available || !fits(platform, device.platformNumber, device.platformName) ||
        !fits(wanted, device.number, device.name))
      continue;
    if (chosen == nullptr || ((chosen->type & kTypeGpu) == 0 && (device.type & kTypeGpu) != 0 && choice.empty()))
      chosen = &device;
  }
  if (chosen != nullptr) return *chosen;
  std::string known;
  for (const Device& device : all)
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", device.address(), device.name);
  if (known.empty())
    return Error{.code = Code::Device, .message = "no platform of OpenCL has a device", .hint = kWhyNoDevice};
  return Error{.code = Code::Device,
               .message = fmt::format("there is no OpenCL device {}", quoted(choice)),
               .hint = fmt::format("the machine has {}; `aglow devices` tells more", known)};
}

}  // namespace aglow::opencl
