// SPDX-License-Identifier: Apache-2.0
// Stands for libcuda and NVRTC, and for the HIP runtime and hipRTC: its device memory is the host's, its
// kernel the emulation.
// MSPROBE_FAKE_GPU_FAULT says what fails: init, device, compile, load, memory, launch, busy, sum, crc;
// MSPROBE_FAKE_GPU_CAPABILITY what the real compilers are to compile for (tests/peer/gpu_compilers.py).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "collector/device/emulation.hpp"

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

int launches = 0;
int fetches = 0;
int waits = 0;
int takeovers = 0;   // a stream of the program that waits for another
int own_stream = 0;  // its address is the collector's stream
int contexts = 0;    // that are current
int hip_error = 0;   // the runtime keeps it until it is asked for
int hip_device = 3;  // the current one, which the program has chosen
std::string compiled_for;

bool faulty(const char* what) {
  const char* fault = std::getenv("MSPROBE_FAKE_GPU_FAULT");
  return fault != nullptr && std::strcmp(fault, what) == 0;
}

void* memory(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

FAKE void fake_gpu_counts(int* counts) {
  counts[0] = launches;
  counts[1] = fetches;
  counts[2] = waits;
  counts[3] = contexts;
  counts[4] = hip_device;
  counts[5] = takeovers;
  counts[6] = hip_error;
}

FAKE int cuInit(unsigned) {
  return faulty("init") ? 100 : 0;
}
FAKE int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return faulty("device") || ordinal > 1 ? 101 : 0;
}
FAKE int cuDeviceGetAttribute(int* value, int attribute, int) {
  const char* capability = std::getenv("MSPROBE_FAKE_GPU_CAPABILITY");  // such as 75, if not 90
  const int number = capability != nullptr ? std::atoi(capability) : 90;
  *value = attribute == 75 ? number / 10 : number % 10;
  return 0;
}
FAKE int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &contexts;
  return 0;
}
FAKE int cuCtxPushCurrent_v2(void* context) {
  ++contexts;
  return context == &contexts ? 0 : 201;
}
FAKE int cuCtxPopCurrent_v2(void** context) {
  --contexts;
  *context = &contexts;
  return 0;
}
FAKE int cuModuleLoadData(void** module, const void* image) {
  if (faulty("load") || std::strcmp(static_cast<const char*>(image), "code") != 0) return 200;
  *module = &launches;
  return 0;
}
FAKE int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = &launches;
  return std::strcmp(name, "msprobe_measure") == 0 ? 0 : 500;
}
FAKE int cuMemAlloc_v2(std::uint64_t* address, std::size_t size) {
  if (faulty("memory")) return 2;
  *address = reinterpret_cast<std::uintptr_t>(std::aligned_alloc(256, (size + 255) / 256 * 256));
  return 0;
}
FAKE int cuMemFree_v2(std::uint64_t address) {
  std::free(memory(address));
  return 0;
}
FAKE int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t size, void* stream) {
  if (stream != &own_stream) return 400;
  ++fetches;
  std::memcpy(to, memory(from), size);
  return 0;
}
FAKE int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t size, void* stream) {
  if (stream != &own_stream) return 400;
  std::memcpy(memory(to), from, size);
  return 0;
}
FAKE int cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t size, void* stream) {
  if (stream != &own_stream) return 400;
  std::memset(memory(to), value, size);
  return 0;
}
FAKE int cuStreamCreate(void** stream, unsigned flags) {
  *stream = &own_stream;
  return flags == 1 ? 0 : 1;
}
FAKE int cuStreamSynchronize(void* stream) {
  ++waits;
  return stream == &own_stream ? 0 : 400;
}
FAKE int cuEventCreate(void** event, unsigned flags) {
  *event = new void*(nullptr);  // the stream that it was recorded in
  return flags == 2 ? 0 : 1;
}
FAKE int cuEventDestroy_v2(void* event) {
  delete static_cast<void**>(event);
  return 0;
}
FAKE int cuStreamDestroy_v2(void* stream) {
  return stream == &own_stream ? 0 : 400;
}
FAKE int cuEventRecord(void* event, void* stream) {
  *static_cast<void**>(event) = stream;
  return 0;
}
FAKE int cuEventQuery(void*) {
  return faulty("busy") ? 600 : 0;
}
FAKE int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  if (stream != &own_stream && stream != *static_cast<void**>(event)) ++takeovers;
  return flags == 0 ? 0 : 400;
}
FAKE int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned,
                        unsigned, void*, void** parameters, void**) {
  if (faulty("launch") || function != &launches || grid == 0 || block != msprobe::gpu::kLanes) return 1;
  ++launches;
  const auto& launch = *static_cast<const msprobe::gpu::KernelLaunch*>(parameters[0]);
  msprobe::gpu::emulate(launch);
  if (faulty("sum")) launch.rows[0].sum *= 1 + 1e-15;
  if (faulty("crc")) launch.rows[0].crc ^= 1;
  return 0;
}

FAKE int hipInit(unsigned flags) {
  return cuInit(flags);
}
FAKE int hipGetDevice(int* ordinal) {
  *ordinal = hip_device;
  return 0;
}
FAKE int hipSetDevice(int ordinal) {
  if (faulty("device") || (ordinal > 1 && ordinal != 3)) return hip_error = 101;
  hip_device = ordinal;
  return 0;
}
FAKE int hipModuleLoadData(void** module, const void* image) {
  return hip_device <= 1 ? cuModuleLoadData(module, image) : 201;
}
FAKE int hipModuleGetFunction(void** function, void* module, const char* name) {
  return cuModuleGetFunction(function, module, name);
}
FAKE int hipMalloc(std::uint64_t* address, std::size_t size) {
  return hip_device <= 1 ? cuMemAlloc_v2(address, size) : 201;
}
FAKE int hipFree(std::uint64_t address) {
  return cuMemFree_v2(address);
}
FAKE int hipMemcpyDtoHAsync(void* to, std::uint64_t from, std::size_t size, void* stream) {
  return cuMemcpyDtoHAsync_v2(to, from, size, stream);
}
FAKE int hipMemcpyHtoDAsync(std::uint64_t to, const void* from, std::size_t size, void* stream) {
  return cuMemcpyHtoDAsync_v2(to, from, size, stream);
}
FAKE int hipMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t size, void* stream) {
  return cuMemsetD8Async(to, value, size, stream);
}
FAKE int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  return hip_device <= 1 ? cuStreamCreate(stream, flags) : 201;
}
FAKE int hipStreamSynchronize(void* stream) {
  return cuStreamSynchronize(stream);
}
FAKE int hipEventCreateWithFlags(void** event, unsigned flags) {
  return hip_device <= 1 ? cuEventCreate(event, flags) : 201;
}
FAKE int hipEventDestroy(void* event) {
  return cuEventDestroy_v2(event);
}
FAKE int hipStreamDestroy(void* stream) {
  return cuStreamDestroy_v2(stream);
}
FAKE int hipEventRecord(void* event, void* stream) {
  return cuEventRecord(event, stream);
}
FAKE int hipEventQuery(void* event) {
  return hip_error = cuEventQuery(event);
}
FAKE int hipStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return cuStreamWaitEvent(stream, event, flags);
}
FAKE int hipGetLastError() {
  const int last = hip_error;
  hip_error = 0;
  return last;
}
FAKE int hipModuleLaunchKernel(void* function, unsigned grid, unsigned y, unsigned z, unsigned block,
                               unsigned block_y, unsigned block_z, unsigned shared, void* stream,
                               void** parameters, void** extra) {
  if (hip_device > 1) return 201;
  return hip_error =
             cuLaunchKernel(function, grid, y, z, block, block_y, block_z, shared, stream, parameters, extra);
}

FAKE int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                            const char* const*) {
  *program = &compiled_for;
  return std::strstr(source, "extern \"C\" __global__") != nullptr ? 0 : 1;
}
FAKE int nvrtcDestroyProgram(void**) {
  return 0;
}
FAKE int nvrtcCompileProgram(void*, int count, const char* const* options) {
  std::string all;
  for (int i = 0; i < count; ++i) all += options[i];
  const char* expected = std::getenv("MSPROBE_FAKE_GPU_CODE");
  const std::string architecture = expected != nullptr ? expected : "sm_90";
  const bool right = all == "--gpu-architecture=" + architecture + "--std=c++17--fmad=false";
  return !faulty("compile") && right ? 0 : 6;
}
FAKE int nvrtcGetNumSupportedArchs(int* count) {
  *count = 4;
  return 0;
}
FAKE int nvrtcGetSupportedArchs(int* all) {
  for (const int one : {80, 87, 90, 100}) *all++ = one;
  return 0;
}
FAKE int nvrtcGetCUBINSize(void*, std::size_t* size) {
  *size = 5;
  return 0;
}
FAKE int nvrtcGetCUBIN(void*, char* code) {
  std::memcpy(code, "code", 5);
  return 0;
}
FAKE int nvrtcGetProgramLogSize(void*, std::size_t* size) {
  *size = 18;
  return 0;
}
FAKE int nvrtcGetProgramLog(void*, char* text) {
  std::memcpy(text, "invalid arch\nmore", 18);
  return 0;
}

FAKE int hiprtcCreateProgram(void** program, const char* source, const char* name, int count,
                             const char* const* headers, const char* const* names) {
  return nvrtcCreateProgram(program, source, name, count, headers, names);
}
FAKE int hiprtcDestroyProgram(void**) {
  return 0;
}
FAKE int hiprtcCompileProgram(void*, int count, const char* const* options) {
  std::string all;
  for (int i = 0; i < count; ++i) all += options[i];
  return !faulty("compile") && all == "--offload-arch=gfx90a:xnack---std=c++17-ffp-contract=off" ? 0 : 6;
}
FAKE int hiprtcGetCodeSize(void* program, std::size_t* size) {
  return nvrtcGetCUBINSize(program, size);
}
FAKE int hiprtcGetCode(void* program, char* code) {
  return nvrtcGetCUBIN(program, code);
}
FAKE int hiprtcGetProgramLogSize(void* program, std::size_t* size) {
  return nvrtcGetProgramLogSize(program, size);
}
FAKE int hiprtcGetProgramLog(void* program, char* text) {
  return nvrtcGetProgramLog(program, text);
}
