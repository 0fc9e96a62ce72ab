// SPDX-License-Identifier: Apache-2.0
// A GPU's driver and compiler, which a framework brings: CUDA's driver and NVRTC, or the HIP runtime and
// hipRTC. They are loaded by name, so the build needs none of their files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace msprobe::gpu {

/// The reason why a GPU is not used, in one line.
class GpuError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A library that stays loaded until the end of the process.
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

enum class Maker { cuda, hip };

/// One device, through its driver. The functions exist in CUDA's driver and in the HIP runtime under
/// different names.
class Driver {
 public:
  using Address = std::uint64_t;

  Driver(Maker maker, const std::string& path, int ordinal);

  /// The architecture for the compiler ("sm_90"); CUDA only.
  std::string architecture() const;
  /// Throws unless `status` is 0, which the driver's functions return on success.
  void check(int status, const char* what) const;
  /// Makes the device current for this thread until leave(), which takes the result of enter().
  int enter() const;
  void leave(int before) const;

  /// True if all work before a recorded event is done.
  bool is_over(void* event) const;

  int (*load_module)(void** module, const void* image);
  int (*get_function)(void** function, void* module, const char* name);
  int (*allocate)(Address* address, std::size_t size);
  int (*release)(Address address);
  // These all work on a stream. Nothing here waits for other streams: they may have to wait for other
  // machines, and those for this one.
  int (*copy_to_host)(void* to, Address from, std::size_t size, void* stream);
  int (*copy_to_device)(Address to, const void* from, std::size_t size, void* stream);
  int (*fill)(Address to, unsigned char value, std::size_t size, void* stream);
  int (*make_stream)(void** stream, unsigned flags);
  int (*wait_for_stream)(void* stream);
  int (*end_stream)(void* stream);
  int (*make_event)(void** event, unsigned flags);
  int (*end_event)(void* event);
  int (*record_event)(void* event, void* stream);
  int (*let_wait)(void* stream, void* event, unsigned flags);  // later work of the stream waits for the event
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters,
                void** extra);

 private:
  void open_cuda(const Library& library);
  void open_hip(const Library& library);

  Maker maker_;
  int ordinal_;
  // CUDA only
  int device_ = 0;
  void* context_ = nullptr;
  int (*device_attribute_)(int* value, int attribute, int device) = nullptr;
  int (*push_context_)(void* context) = nullptr;
  int (*pop_context_)(void** context) = nullptr;
  // HIP only
  int (*get_device_)(int* ordinal) = nullptr;
  int (*set_device_)(int ordinal) = nullptr;
  int (*last_error_)() = nullptr;
  int (*query_event_)(void* event) = nullptr;
};

// These values are the same for both makers.
inline constexpr unsigned kOnItsOwn = 1;  // a stream that does not wait for the default one
inline constexpr unsigned kNoTiming = 2;  // of an event

/// Memory of the device, which the driver knows by numbers.
template <typename T>
T* pointer(Driver::Address address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));  // NOLINT: only the GPU dereferences it
}

/// Compiles a program for an architecture ("sm_90", "gfx90a:xnack-") with NVRTC or hipRTC. If NVRTC does not
/// know the architecture yet, takes the highest of its generation. GpuError has the first line of the
/// compiler's complaint.
std::vector<char> compile(Maker maker, const std::string& library, const char* source,
                          const std::string& architecture);

}  // namespace msprobe::gpu
