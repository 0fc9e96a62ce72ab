// SPDX-License-Identifier: Apache-2.0
#include "collector/device/libraries.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace msprobe::gpu {

void Driver::check(int status, const char* what) const {
  if (status == 0) return;
  // HIP keeps the error for the next caller that asks, which would be the framework.
  if (last_error_ != nullptr) last_error_();
  throw GpuError("the GPU's driver cannot " + std::string(what) + " (error " + std::to_string(status) + ")");
}

Library::Library(const std::string& path)
    : path_(path), handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw GpuError(path + " cannot be loaded");
}

void* Library::address_of(const char* name) const {
  void* address = ::dlsym(handle_, name);
  if (address == nullptr) throw GpuError(path_ + " has no " + name);
  return address;
}

Driver::Driver(Maker maker, const std::string& path, int ordinal) : maker_(maker), ordinal_(ordinal) {
  const Library library(path);
  const bool cuda = maker == Maker::cuda;
  library.find(load_module, cuda ? "cuModuleLoadData" : "hipModuleLoadData");
  library.find(get_function, cuda ? "cuModuleGetFunction" : "hipModuleGetFunction");
  library.find(allocate, cuda ? "cuMemAlloc_v2" : "hipMalloc");
  library.find(release, cuda ? "cuMemFree_v2" : "hipFree");
  library.find(copy_to_host, cuda ? "cuMemcpyDtoHAsync_v2" : "hipMemcpyDtoHAsync");
  library.find(copy_to_device, cuda ? "cuMemcpyHtoDAsync_v2" : "hipMemcpyHtoDAsync");
  library.find(fill, cuda ? "cuMemsetD8Async" : "hipMemsetD8Async");
  library.find(make_stream, cuda ? "cuStreamCreate" : "hipStreamCreateWithFlags");
  library.find(wait_for_stream, cuda ? "cuStreamSynchronize" : "hipStreamSynchronize");
  library.find(make_event, cuda ? "cuEventCreate" : "hipEventCreateWithFlags");
  library.find(end_stream, cuda ? "cuStreamDestroy_v2" : "hipStreamDestroy");
  library.find(end_event, cuda ? "cuEventDestroy_v2" : "hipEventDestroy");
  library.find(record_event, cuda ? "cuEventRecord" : "hipEventRecord");
  library.find(query_event_, cuda ? "cuEventQuery" : "hipEventQuery");
  library.find(let_wait, cuda ? "cuStreamWaitEvent" : "hipStreamWaitEvent");
  library.find(launch, cuda ? "cuLaunchKernel" : "hipModuleLaunchKernel");
  int (*init)(unsigned flags) = nullptr;
  library.find(init, cuda ? "cuInit" : "hipInit");
  check(init(0), "start");
  if (cuda) {
    open_cuda(library);
  } else {
    open_hip(library);
  }
}

void Driver::open_cuda(const Library& library) {
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*retain_context)(void** context, int device) = nullptr;
  library.find(device_get, "cuDeviceGet");
  library.find(retain_context, "cuDevicePrimaryCtxRetain");
  library.find(device_attribute_, "cuDeviceGetAttribute");
  library.find(push_context_, "cuCtxPushCurrent_v2");
  library.find(pop_context_, "cuCtxPopCurrent_v2");
  check(device_get(&device_, ordinal_), "find the device");
  // Uses the framework's context, which is kept until the end of the process.
  check(retain_context(&context_, device_), "create a context");
}

void Driver::open_hip(const Library& library) {
  library.find(get_device_, "hipGetDevice");
  library.find(set_device_, "hipSetDevice");
  library.find(last_error_, "hipGetLastError");
  leave(enter());
}

std::string Driver::architecture() const {
  constexpr int kMajor = 75;  // attributes of a device: its compute capability
  constexpr int kMinor = 76;
  int major = 0;
  int minor = 0;
  check(device_attribute_(&major, kMajor, device_), "report the architecture");
  check(device_attribute_(&minor, kMinor, device_), "report the architecture");
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

int Driver::enter() const {
  int before = 0;
  if (maker_ == Maker::cuda) {
    check(push_context_(context_), "make the context current");
  } else {
    check(get_device_(&before), "report the current device");
    check(set_device_(ordinal_), "find the device");
  }
  return before;
}

void Driver::leave(int before) const {
  void* popped = nullptr;
  if (maker_ == Maker::cuda) {
    pop_context_(&popped);
  } else {
    set_device_(before);
  }
}

bool Driver::is_over(void* event) const {
  const bool over = query_event_(event) == 0;
  if (!over && last_error_ != nullptr) last_error_();  // "not ready" is an error, too
  return over;
}

namespace {

/// The functions that both compilers have; NVRTC's names begin with "nvrtc", hipRTC's with "hiprtc".
class Program {
 public:
  Program(Maker maker, const Library& library, const char* source) {
    const std::string prefix = maker == Maker::cuda ? "nvrtc" : "hiprtc";
    const std::string code = maker == Maker::cuda ? "GetCUBIN" : "GetCode";
    const auto find = [&](auto*& function, const std::string& name) {
      library.find(function, (prefix + name).c_str());
    };
    int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
    find(create, "CreateProgram");
    find(destroy_, "DestroyProgram");
    find(compile_, "CompileProgram");
    find(code_size_, code + "Size");
    find(code_, code);
    find(log_size_, "GetProgramLogSize");
    find(log_, "GetProgramLog");
    if (create(&program_, source, "msprobe_kernel.cu", 0, nullptr, nullptr) != 0)
      throw GpuError("the GPU's compiler does not start");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { destroy_(&program_); }

  bool compile(const std::array<const char*, 3>& options) {
    return compile_(program_, static_cast<int>(options.size()), options.data()) == 0;
  }
  /// Empty if no code was made.
  std::vector<char> code() const {
    std::size_t size = 0;
    if (code_size_(program_, &size) != 0) return {};
    std::vector<char> image(size);
    if (size > 0 && code_(program_, image.data()) != 0) return {};
    return image;
  }
  std::string complaint() const {
    std::size_t size = 0;
    if (log_size_(program_, &size) != 0 || size == 0) return "";
    std::string text(size, '\0');
    if (log_(program_, text.data()) != 0) return "";
    return text.substr(0, text.find_first_of(std::string_view("\n\0", 2)));
  }

 private:
  void* program_ = nullptr;
  int (*destroy_)(void**) = nullptr;
  int (*compile_)(void*, int, const char* const*) = nullptr;
  int (*code_size_)(void*, std::size_t*) = nullptr;
  int (*code_)(void*, char*) = nullptr;
  int (*log_size_)(void*, std::size_t*) = nullptr;
  int (*log_)(void*, char*) = nullptr;
};

/// The number of the architecture ("sm_90" is 90), or the highest of its generation below it that the
/// compiler knows: code for that runs on it, too.
std::string known_to(const Library& library, const std::string& architecture) {
  constexpr std::string_view kPrefix = "sm_";
  int count = 0;
  int (*get_count)(int*) = nullptr;
  int (*get_all)(int*) = nullptr;
  library.find(get_count, "nvrtcGetNumSupportedArchs");
  library.find(get_all, "nvrtcGetSupportedArchs");
  if (get_count(&count) != 0 || count < 1 || count > 1000) return architecture;
  std::vector<int> all(static_cast<std::size_t>(count));
  if (get_all(all.data()) != 0) return architecture;
  // Code for Jetson and Thor runs on no other GPU.
  constexpr std::array kAlone = {53, 62, 72, 87, 101, 110};
  const int wanted = std::stoi(architecture.substr(kPrefix.size()));
  int best = 0;
  for (const int one : all) {
    const bool runs = one == wanted || (one < wanted && one / 10 == wanted / 10 &&
                                        std::ranges::find(kAlone, one) == kAlone.end());
    if (runs) best = std::max(best, one);
  }
  return best == 0 ? architecture : std::string(kPrefix) + std::to_string(best);
}

}  // namespace

std::vector<char> compile(Maker maker, const std::string& library_path, const char* source,
                          const std::string& architecture) {
  const Library library(library_path);
  Program program(maker, library, source);
  const bool cuda = maker == Maker::cuda;
  const std::string target =
      cuda ? "--gpu-architecture=" + known_to(library, architecture) : "--offload-arch=" + architecture;
  // Fused operations would give other sums than those of the host.
  if (!program.compile({target.c_str(), "--std=c++17", cuda ? "--fmad=false" : "-ffp-contract=off"})) {
    throw GpuError("the GPU's compiler does not compile for " + architecture + ": " + program.complaint());
  }
  std::vector<char> image = program.code();
  if (image.empty()) throw GpuError("the GPU's compiler returned no code for " + architecture);
  return image;
}

}  // namespace msprobe::gpu
