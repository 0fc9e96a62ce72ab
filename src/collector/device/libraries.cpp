// SPDX-License-Identifier: Apache-2.0
#include "collector/device/libraries.hpp"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace msprobe::gpu {

Library::Library(const std::string& path)
    : path_(path), handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw GpuError(path + " cannot be loaded");
}

void* Library::address_of(const char* name) const {
  void* address = ::dlsym(handle_, name);
  if (address == nullptr) throw GpuError(path_ + " has no " + name);
  return address;
}

Driver::Driver(const std::string& path) {
  const Library library(path);
  library.find(init, "cuInit");
  library.find(device_get, "cuDeviceGet");
  library.find(device_attribute, "cuDeviceGetAttribute");
  library.find(retain_context, "cuDevicePrimaryCtxRetain");
  library.find(push_context, "cuCtxPushCurrent_v2");
  library.find(pop_context, "cuCtxPopCurrent_v2");
  library.find(load_module, "cuModuleLoadData");
  library.find(get_function, "cuModuleGetFunction");
  library.find(allocate, "cuMemAlloc_v2");
  library.find(release, "cuMemFree_v2");
  library.find(copy_to_host, "cuMemcpyDtoH_v2");
  library.find(copy_to_device, "cuMemcpyHtoD_v2");
  library.find(fill, "cuMemsetD8_v2");
  library.find(synchronise, "cuCtxSynchronize");
  library.find(launch, "cuLaunchKernel");
}

namespace {

/// NVRTC's program, which knows what it needs to be destroyed.
class Program {
 public:
  Program(const Library& library, const char* source) {
    library.find(create_, "nvrtcCreateProgram");
    library.find(destroy_, "nvrtcDestroyProgram");
    if (create_(&program_, source, "msprobe_kernel.cu", 0, nullptr, nullptr) != 0)
      throw GpuError("the GPU's compiler does not begin");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { destroy_(&program_); }

  void* get() const { return program_; }

 private:
  void* program_ = nullptr;
  int (*create_)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy_)(void**) = nullptr;
};

}  // namespace

std::vector<char> compile(const std::string& library_path, const char* source,
                          const std::string& architecture) {
  const Library library(library_path);
  int (*compile_program)(void*, int, const char* const*) = nullptr;
  int (*code_size)(void*, std::size_t*) = nullptr;
  int (*code)(void*, char*) = nullptr;
  int (*log_size)(void*, std::size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  library.find(compile_program, "nvrtcCompileProgram");
  library.find(code_size, "nvrtcGetCUBINSize");
  library.find(code, "nvrtcGetCUBIN");
  library.find(log_size, "nvrtcGetProgramLogSize");
  library.find(log, "nvrtcGetProgramLog");

  const Program program(library, source);
  const std::string target = "--gpu-architecture=" + architecture;
  // Fused operations would give other sums than the host's.
  const std::array<const char*, 3> options = {target.c_str(), "--std=c++17", "--fmad=false"};
  std::size_t size = 0;
  if (compile_program(program.get(), static_cast<int>(options.size()), options.data()) != 0) {
    std::string text;
    if (log_size(program.get(), &size) == 0 && size > 0) {
      text.resize(size);
      if (log(program.get(), text.data()) != 0) text.clear();
    }
    throw GpuError("the GPU's compiler does not make code for " + architecture + ": " +
                   text.substr(0, text.find_first_of(std::string_view("\n\0", 2))));
  }
  if (code_size(program.get(), &size) != 0 || size == 0)
    throw GpuError("the GPU's compiler made no code for " + architecture);
  std::vector<char> image(size);
  if (code(program.get(), image.data()) != 0)
    throw GpuError("the GPU's compiler made no code for " + architecture);
  return image;
}

}  // namespace msprobe::gpu
