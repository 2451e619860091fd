// The part of OpenCL 1.2 that the backend calls, declared here so that nothing of OpenCL is needed to build it. The ICD
// loader is opened when a device is first asked for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/error.h"
#include "support/fork.h"

namespace aglow::opencl {

using Platform = struct PlatformHandle*;
using DeviceId = struct DeviceHandle*;
using Context = struct ContextHandle*;
using Queue = struct QueueHandle*;
using Memory = struct MemoryHandle*;
using Built = struct BuiltHandle*;  // a cl_program
using Kernel = struct KernelHandle*;
using Event = struct EventHandle*;
using Bits = uint64_t;

// Values of the standard, under its names.
enum : int32_t {
  kSuccess = 0,
  kDeviceNotFound = -1,
  kAllocationFailure = -4,
  kOutOfResources = -5,
  kOutOfHostMemory = -6,
  kBuildFailure = -11,
  kPlatformNotFound = -1001,
};
enum Info : uint32_t {
  kPlatformVersion = 0x0901,
  kPlatformName = 0x0902,
  kDeviceType = 0x1000,
  kDeviceComputeUnits = 0x1002,
  kDeviceGroupItems = 0x1004,
  kDevicePreferredFloats = 0x100A,
  kDeviceClock = 0x100C,
  kDeviceMostAllocation = 0x1010,
  kDeviceArgumentBytes = 0x1017,
  kDeviceFloatConfig = 0x101B,
  kDeviceGlobalMemory = 0x101F,
  kDeviceLocalMemory = 0x1023,
  kDeviceAvailable = 0x1027,
  kDeviceName = 0x102B,
  kDeviceVendor = 0x102C,
  kDriverVersion = 0x102D,
  kDeviceVersion = 0x102F,
  kDeviceExtensions = 0x1030,
  kDeviceUnifiedMemory = 0x1035,
  kDeviceIlVersion = 0x105B,
  kDeviceWarpOfNvidia = 0x4003,
  kDeviceWavefrontOfAmd = 0x4043,
  kDeviceSubGroupsOfIntel = 0x4108,
  kProgramBinarySizes = 0x1165,
  kProgramBinaries = 0x1166,
  kBuildLog = 0x1183,
  kKernelGroupItems = 0x11B0,
  kKernelLocalMemory = 0x11B2,
  kProfileQueued = 0x1280,
  kProfileStart = 0x1282,
  kProfileEnd = 0x1283,
};
inline constexpr Bits kAnyDevice = 0xFFFFFFFF, kTypeCpu = 1 << 1, kTypeGpu = 1 << 2;
inline constexpr Bits kExactQuotients = 1 << 7;
inline constexpr Bits kReadWrite = 1 << 0, kUseHostBytes = 1 << 3, kAllocateInHost = 1 << 4;
inline constexpr Bits kMapToRead = 1 << 0, kMapToWrite = 1 << 1;
inline constexpr Bits kQueueProfiling = 1 << 1;

// AGLOW_CL(name without "cl", result, parameters)
#define AGLOW_OPENCL_CALLS                                                                                         \
  AGLOW_CL(GetPlatformIDs, int32_t, (uint32_t, Platform*, uint32_t*))                                              \
  AGLOW_CL(GetPlatformInfo, int32_t, (Platform, uint32_t, size_t, void*, size_t*))                                 \
  AGLOW_CL(GetDeviceIDs, int32_t, (Platform, Bits, uint32_t, DeviceId*, uint32_t*))                                \
  AGLOW_CL(GetDeviceInfo, int32_t, (DeviceId, uint32_t, size_t, void*, size_t*))                                   \
  AGLOW_CL(CreateContext, Context,                                                                                 \
           (const intptr_t*, uint32_t, const DeviceId*, void (*)(const char*, const void*, size_t, void*), void*,  \
            int32_t*))                                                                                             \
  AGLOW_CL(ReleaseContext, int32_t, (Context))                                                                     \
  AGLOW_CL(CreateCommandQueue, Queue, (Context, DeviceId, Bits, int32_t*))                                         \
  AGLOW_CL(ReleaseCommandQueue, int32_t, (Queue))                                                                  \
  AGLOW_CL(CreateBuffer, Memory, (Context, Bits, size_t, void*, int32_t*))                                         \
  AGLOW_CL(ReleaseMemObject, int32_t, (Memory))                                                                    \
  AGLOW_CL(CreateProgramWithSource, Built, (Context, uint32_t, const char**, const size_t*, int32_t*))             \
  AGLOW_CL(CreateProgramWithBinary, Built,                                                                         \
           (Context, uint32_t, const DeviceId*, const size_t*, const unsigned char**, int32_t*, int32_t*))         \
  AGLOW_CL(GetProgramInfo, int32_t, (Built, uint32_t, size_t, void*, size_t*))                                     \
  AGLOW_CL(BuildProgram, int32_t, (Built, uint32_t, const DeviceId*, const char*, void (*)(Built, void*), void*))  \
  AGLOW_CL(GetProgramBuildInfo, int32_t, (Built, DeviceId, uint32_t, size_t, void*, size_t*))                      \
  AGLOW_CL(ReleaseProgram, int32_t, (Built))                                                                       \
  AGLOW_CL(CreateKernel, Kernel, (Built, const char*, int32_t*))                                                   \
  AGLOW_CL(SetKernelArg, int32_t, (Kernel, uint32_t, size_t, const void*))                                         \
  AGLOW_CL(GetKernelWorkGroupInfo, int32_t, (Kernel, DeviceId, uint32_t, size_t, void*, size_t*))                  \
  AGLOW_CL(ReleaseKernel, int32_t, (Kernel))                                                                       \
  AGLOW_CL(EnqueueNDRangeKernel, int32_t,                                                                          \
           (Queue, Kernel, uint32_t, const size_t*, const size_t*, const size_t*, uint32_t, const Event*, Event*)) \
  AGLOW_CL(EnqueueWriteBuffer, int32_t,                                                                            \
           (Queue, Memory, uint32_t, size_t, size_t, const void*, uint32_t, const Event*, Event*))                 \
  AGLOW_CL(EnqueueReadBuffer, int32_t,                                                                             \
           (Queue, Memory, uint32_t, size_t, size_t, void*, uint32_t, const Event*, Event*))                       \
  AGLOW_CL(EnqueueMapBuffer, void*,                                                                                \
           (Queue, Memory, uint32_t, Bits, size_t, size_t, uint32_t, const Event*, Event*, int32_t*))              \
  AGLOW_CL(EnqueueUnmapMemObject, int32_t, (Queue, Memory, void*, uint32_t, const Event*, Event*))                 \
  AGLOW_CL(WaitForEvents, int32_t, (uint32_t, const Event*))                                                       \
  AGLOW_CL(GetEventProfilingInfo, int32_t, (Event, uint32_t, size_t, void*, size_t*))                              \
  AGLOW_CL(EnqueueMarkerWithWaitList, int32_t, (Queue, uint32_t, const Event*, Event*))                            \
  AGLOW_CL(EnqueueBarrierWithWaitList, int32_t, (Queue, uint32_t, const Event*, Event*))                           \
  AGLOW_CL(ReleaseEvent, int32_t, (Event))                                                                         \
  AGLOW_CL(Flush, int32_t, (Queue))                                                                                \
  AGLOW_CL(Finish, int32_t, (Queue))

struct Api {
#define AGLOW_CL(name, result, parameters) result(*name) parameters = nullptr;
  AGLOW_OPENCL_CALLS
#undef AGLOW_CL
  uint32_t generation = forkGeneration();

  // Drivers have threads, which a child that this process forks has not: it would wait for them for ever. Device there.
  Status usable() const;
};

// Opened once for the process, and never closed: drivers have threads of their own. Device where there is no loader.
Result<const Api*> openApi();

// What went wrong in a call, by the standard's name of its number; OutOfMemory where that is why.
Error fault(const char* call, int32_t number);
// The same, where something did.
inline Status statusOf(const char* call, int32_t number) { return number == kSuccess ? Status() : fault(call, number); }

}  // namespace aglow::opencl
