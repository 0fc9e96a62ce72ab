// SPDX-License-Identifier: Apache-2.0
// The GPU's driver and its compiler, which a framework brings: loaded by name, nothing of them is needed to
// build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace msprobe::gpu {

/// Why a GPU is not used, in one line.
class GpuError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A library that stays loaded to the end of the process.
class Library {
 public:
  explicit Library(const std::string& path);

  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }

 private:
  void* address_of(const char* name) const;

  std::string path_;
  void* handle_;
};

/// What is used of the CUDA driver's interface; its functions return 0 if all is well.
struct Driver {
  using Address = std::uint64_t;

  explicit Driver(const std::string& path);

  int (*init)(unsigned flags);
  int (*device_get)(int* device, int ordinal);
  int (*device_attribute)(int* value, int attribute, int device);
  int (*retain_context)(void** context, int device);
  int (*push_context)(void* context);
  int (*pop_context)(void** context);
  int (*load_module)(void** module, const void* image);
  int (*get_function)(void** function, void* module, const char* name);
  int (*allocate)(Address* address, std::size_t size);
  int (*release)(Address address);
  int (*copy_to_host)(void* to, Address from, std::size_t size);
  int (*copy_to_device)(Address to, const void* from, std::size_t size);
  int (*fill)(Address to, unsigned char value, std::size_t size);
  int (*synchronise)();
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters,
                void** extra);
};

/// Memory of the device, which the driver knows by numbers.
template <typename T>
T* pointer(Driver::Address address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));  // NOLINT: nothing here follows it
}

/// The code of a program for an architecture ("sm_90"), by NVRTC. GpuError has the first line of its
/// complaint.
std::vector<char> compile(const std::string& library, const char* source, const std::string& architecture);

}  // namespace msprobe::gpu
