// SPDX-License-Identifier: Apache-2.0
// The collector for C++20 programs: a thin layer over the C interface (collector.h), which says what each
// call does. Only what cannot start throws (RecorderError from a Recorder's constructor); a failure to record
// later is no failure of the program and shows in Recorder::status().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "msprobe/collector.h"

namespace msprobe {

class RecorderError : public std::runtime_error {
 public:
  explicit RecorderError(msprobe_status status) : std::runtime_error(msprobe_last_error()), status_(status) {}
  msprobe_status status() const { return status_; }

 private:
  msprobe_status status_;
};

/// Elements in memory that the caller owns. Without strides they are in row-major order.
struct Tensor {
  const void* data = nullptr;
  msprobe_dtype dtype = MSPROBE_FLOAT32;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides = {};
  bool requires_grad = false;

  msprobe_tensor descriptor() const {
    msprobe_tensor tensor = {};
    tensor.struct_size = sizeof tensor;
    tensor.data = data;
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
    tensor.ndim = static_cast<std::uint32_t>(shape.size());
    tensor.dtype = dtype;
    tensor.flags = MSPROBE_TENSOR_HAS_REQUIRES_GRAD;
    if (requires_grad) tensor.flags |= MSPROBE_TENSOR_REQUIRES_GRAD;
    return tensor;
  }
};

/// One section of an entry. Commits when it goes.
class Section {
 public:
  explicit Section(msprobe_builder* builder) : builder_(builder) {}
  Section(Section&& other) noexcept : builder_(std::exchange(other.builder_, nullptr)) {}
  Section& operator=(Section&&) = delete;
  ~Section() {
    if (builder_ != nullptr) msprobe_builder_commit(builder_);
  }

  /// False if nothing is recorded here; then everything that is added is ignored.
  explicit operator bool() const { return builder_ != nullptr; }

  /// In an object with a key, in a list without.
  Section& add(const Tensor& tensor, const char* key = nullptr) {
    const msprobe_tensor descriptor = tensor.descriptor();
    if (builder_ != nullptr) msprobe_add_tensor(builder_, key, &descriptor, nullptr);
    return *this;
  }
  Section& add(std::int64_t value, const char* key = nullptr) {
    if (builder_ != nullptr) msprobe_add_int(builder_, key, "int", value);
    return *this;
  }
  Section& add(double value, const char* key = nullptr) {
    if (builder_ != nullptr) msprobe_add_double(builder_, key, "float", value);
    return *this;
  }
  Section& add(std::string_view value, const char* key = nullptr) {
    if (builder_ != nullptr) msprobe_add_text(builder_, key, "str", value.data(), value.size());
    return *this;
  }
  Section& add_null(const char* key = nullptr) {
    if (builder_ != nullptr) msprobe_add_null(builder_, key);
    return *this;
  }
  /// For all that has no function here.
  msprobe_builder* get() const { return builder_; }

 private:
  msprobe_builder* builder_;
};

/// A call that goes on; it ends with its scope, whether by an exception or not.
class Call {
 public:
  Call(msprobe_session* session, msprobe_kind kind, std::uint32_t name) : session_(session) {
    msprobe_enter(session_, kind, name, &event_);
  }
  /// The backward of a call, from its event.
  Call(msprobe_session* session, const msprobe_event& forward) : session_(session) {
    msprobe_enter_backward(session_, &forward, &event_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { msprobe_leave(session_, &event_); }

  const msprobe_event& event() const { return event_; }
  Section input() { return section(MSPROBE_INPUT); }
  Section kwargs() { return section(MSPROBE_KWARGS); }
  Section output() { return section(MSPROBE_OUTPUT); }
  /// Instead of output(): the fields have names.
  Section named_output() { return section(MSPROBE_NAMED_OUTPUT); }
  Section parameters() { return section(MSPROBE_PARAMETERS); }
  /// The buffers of a module, as it is entered.
  Section buffers() { return section(MSPROBE_BUFFERS); }

 private:
  Section section(msprobe_section which) {
    msprobe_builder* builder = nullptr;
    msprobe_section_begin(session_, &event_, which, &builder);
    return Section(builder);
  }

  msprobe_session* session_;
  msprobe_event event_ = {};
};

class Recorder {
 public:
  /// From the text of a configuration; a file's path takes precedence where it is given.
  explicit Recorder(const char* config_text, const char* config_path = nullptr,
                    const msprobe_overrides* overrides = nullptr) {
    msprobe_session* session = nullptr;
    const msprobe_status status = msprobe_session_open(config_path, config_text, overrides, &session);
    if (status < 0) throw RecorderError(status);
    session_.reset(session);
    running_ = msprobe_session_running(session);
  }

  /// Is this step recorded?
  bool start() {
    msprobe_decision decision = MSPROBE_NOT_NOW;
    return note(msprobe_start(get(), &decision, nullptr)) && decision == MSPROBE_RECORDING;
  }
  bool stop() { return note(msprobe_stop(get())); }
  bool step() { return note(msprobe_step(get())); }
  bool set_rank(std::int64_t rank) { return note(msprobe_set_rank(get(), rank)); }
  bool running() const { return *running_ != 0; }

  /// `name` is "Functional.linear".
  Call api(const char* name) { return Call(get(), MSPROBE_KIND_API, number_of(name)); }
  /// `name` is "Module.layers.0.Layer".
  Call module(const char* name) { return Call(get(), MSPROBE_KIND_MODULE, number_of(name)); }
  Call backward(const msprobe_event& forward) { return Call(get(), forward); }
  /// The gradient that a parameter of a module has now.
  void parameter_gradient(const char* module, const char* parameter, std::uint32_t parameters,
                          const Tensor& gradient) {
    msprobe_builder* builder = nullptr;
    msprobe_parameter_gradient(get(), number_of(module), parameter, parameters, &builder);
    Section(builder).add(gradient);
  }

  /// The status of the last start, stop, step or set_rank.
  msprobe_status status() const { return status_; }
  msprobe_session* get() const { return session_.get(); }

 private:
  struct Closer {
    void operator()(msprobe_session* session) const { msprobe_session_close(session); }
  };
  static std::uint32_t number_of(const char* name) {
    std::uint32_t number = 0;
    msprobe_intern(name, &number);
    return number;
  }
  bool note(msprobe_status status) {
    status_ = status;
    return status >= 0;
  }

  std::unique_ptr<msprobe_session, Closer> session_;
  const volatile int* running_ = nullptr;
  msprobe_status status_ = MSPROBE_OK;
};

}  // namespace msprobe
