#include "backends/opencl/api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace aglow::opencl {

namespace {

constexpr const char* kLoader = "libOpenCL.so.1";

Result<Api> load() {
  void* library = dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Error{
        .code = Code::Device,
        .message = fmt::format("OpenCL's loader cannot be opened: {}", why == nullptr ? kLoader : why),
        .hint = "on Debian and Ubuntu: apt-get install ocl-icd-libopencl1, and a driver such as pocl-opencl-icd"};
  }
  Api api;
  const char* missing = nullptr;
  const auto find = [&]<class F>(const char* name, F*& place) {
    place = reinterpret_cast<F*>(dlsym(library, name));
    if (place == nullptr) missing = name;
  };
#define AGLOW_CL(name, result, parameters) find("cl" #name, api.name);
  AGLOW_OPENCL_CALLS
#undef AGLOW_CL
  if (missing != nullptr)
    return Error{.code = Code::Device,
                 .message = fmt::format("OpenCL's loader has no {}: OpenCL 1.2 is needed", missing)};
  return api;
}

struct Name {
  int32_t number;
  const char* text;
};
constexpr Name kNames[] = {{-1, "DEVICE_NOT_FOUND"},        {-2, "DEVICE_NOT_AVAILABLE"},
                           {-3, "COMPILER_NOT_AVAILABLE"},  {-4, "MEM_OBJECT_ALLOCATION_FAILURE"},
                           {-5, "OUT_OF_RESOURCES"},        {-6, "OUT_OF_HOST_MEMORY"},
                           {-11, "BUILD_PROGRAM_FAILURE"},  {-14, "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
                           {-30, "INVALID_VALUE"},          {-33, "INVALID_DEVICE"},
                           {-34, "INVALID_CONTEXT"},        {-36, "INVALID_COMMAND_QUEUE"},
                           {-38, "INVALID_MEM_OBJECT"},     {-42, "INVALID_BINARY"},
                           {-46, "INVALID_KERNEL_NAME"},    {-48, "INVALID_KERNEL"},
                           {-52, "INVALID_KERNEL_ARGS"},    {-54, "INVALID_WORK_GROUP_SIZE"},
                           {-55, "INVALID_WORK_ITEM_SIZE"}, {-61, "INVALID_BUFFER_SIZE"},
                           {-1001, "PLATFORM_NOT_FOUND"}};

}  // namespace

Result<const Api*> openApi() {
  static const Result<Api> api = load();
  if (!api.ok()) return api.error();
  AGLOW_OK(api->usable());
  return &*api;
}

Status Api::usable() const {
  if (generation == forkGeneration()) return {};
  return Error{.code = Code::Device,
               .message = "OpenCL belongs to the process that this one was forked from",
               .hint = "fork before it is used, or start processes otherwise: Python's multiprocessing has 'spawn'"};
}

Error fault(const char* call, int32_t number) {
  const auto* name =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& row) { return row.number == number; });
  // Where the host only waits, nothing is allocated: a kernel has failed, and the device with it.
  static constexpr std::string_view kWaits[] = {"clFinish", "clWaitForEvents", "clEnqueueMapBuffer"};
  const bool waits = std::find(std::begin(kWaits), std::end(kWaits), call) != std::end(kWaits);
  const bool memory =
      number == kAllocationFailure || number == kOutOfHostMemory || (number == kOutOfResources && !waits);
  return {.code = memory ? Code::OutOfMemory : Code::Device,
          .message = fmt::format("{} failed with {}{}", call, name == std::end(kNames) ? "error " : "CL_",
                                 name == std::end(kNames) ? fmt::to_string(number) : name->text)};
}

}  // namespace aglow::opencl
