// SPDX-License-Identifier: Apache-2.0
// The C interface. It checks arguments and lets no exception out.
#include <memory>
#include <string>
#include <utility>

#include "collector/builder.hpp"
#include "collector/c_guard.hpp"
#include "collector/c_tensor.hpp"
#include "collector/checksum.hpp"
#include "collector/config.hpp"
#include "collector/last_error.hpp"
#include "collector/measure.hpp"
#include "collector/reuse.hpp"
#include "collector/session.hpp"
#include "collector/tensor_file.hpp"
#include "msprobe/collector.h"
#include "support/version.hpp"

using namespace msprobe::collector;  // NOLINT: this file is their C interface

namespace {

/// Runs a call that needs a session of this process.
template <typename Body>
msprobe_status with(msprobe_session* session, Body body) noexcept {
  if (session == nullptr) return failed(MSPROBE_INVALID, "the session is missing");
  if (session->session.orphaned()) return MSPROBE_SKIP;
  return guarded(MSPROBE_FAILED, [&] { return body(session->session); });
}

/// Runs a call on the session's recorder.
template <typename Body>
msprobe_status with_recorder(msprobe_session* session, Body body) noexcept {
  return with(session, [&](Session& s) { return s.locked(body); });
}

template <typename Body>
msprobe_status with(msprobe_builder* builder, Body body) noexcept {
  if (builder == nullptr) return failed(MSPROBE_INVALID, "the builder is missing");
  if (builder->builder.orphaned()) return MSPROBE_SKIP;
  return guarded(MSPROBE_FAILED, [&] { return body(builder->builder); });
}

std::optional<std::string> text_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  return text;
}

msprobe_status hand_out(std::unique_ptr<Builder> made, msprobe_builder** builder) {
  *builder = nullptr;
  if (!made) return MSPROBE_SKIP;
  *builder = new msprobe_builder{std::move(*made)};
  return MSPROBE_OK;
}

/// The owner releases the tensor even if the call fails.
std::shared_ptr<const Owner> owner_of(const msprobe_tensor& tensor) {
  if (tensor.release == nullptr) return nullptr;
  return std::make_shared<const Owner>(tensor);
}

/// The owner of the tensor is released even if the call fails.
TensorView borrowed_view(const msprobe_tensor* tensor) {
  const msprobe_tensor known = known_part(tensor);
  const auto owner = owner_of(known);
  return filled_view(known);
}

}  // namespace

extern "C" {

const char* msprobe_last_error(void) {
  return last_error();
}

msprobe_status msprobe_get_dtype(uint32_t dtype, msprobe_dtype_info* info) {
  if (dtype >= static_cast<uint32_t>(msprobe::tensor::kDTypeCount)) return MSPROBE_SKIP;
  return guarded(MSPROBE_FAILED, [&] {
    const msprobe::tensor::DTypeInfo& known =
        msprobe::tensor::info(static_cast<msprobe::tensor::DType>(dtype));
    // Both names are literals, which end with a NUL.
    needed(info, "the output pointer of the dtype's description") = {known.name.data(), known.numpy.data(),
                                                                     static_cast<uint32_t>(known.size)};
    return MSPROBE_OK;
  });
}

const char* msprobe_version(void) {
  return msprobe::kVersion;
}

msprobe_status msprobe_session_open(const char* config_path, const char* config_text,
                                    const msprobe_overrides* overrides, msprobe_session** session) {
  return guarded(MSPROBE_INVALID, [&] {
    needed(session, "the output pointer of the session");
    *session = nullptr;
    ConfigOrigin origin;
    if (overrides != nullptr) {
      const msprobe_overrides given = known_part(overrides);
      origin.overrides = {text_of(given.task), text_of(given.dump_path), text_of(given.level),
                          text_of(given.step)};
      if (given.framework != nullptr) origin.framework = given.framework;
      if (given.file_suffix != nullptr) origin.suffix = given.file_suffix;
      if (given.dumps_kernels != 0) origin.overrides.kernels_of = origin.framework;
    }
    if (origin.suffix != "pt" && origin.suffix != "npy") throw InvalidCall("file_suffix must be pt or npy");
    Config config;
    if (config_path != nullptr) {
      origin.path = config_path;
      config = read_config(origin.path, origin.overrides);
    } else {
      config =
          parse_config(config_text != nullptr ? config_text : "{}", "the configuration", origin.overrides);
    }
    if (config.task == Task::acc_check && origin.framework != "pytorch")
      throw InvalidCall("task acc_check is for PyTorch");
    if ((config.task == Task::grad_probe || config.task == Task::free_benchmark) &&
        origin.framework != "pytorch" && origin.framework != "mindspore")
      throw InvalidCall("tasks grad_probe and free_benchmark are for PyTorch and MindSpore");
    if (config.loads && origin.framework != "pytorch") throw InvalidCall("section load is for PyTorch");
    *session = new msprobe_session{{std::move(config), origin}};
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_session_close(msprobe_session* session) {
  if (session == nullptr) return MSPROBE_OK;
  // Another process may have been changing the session when it forked, so the session is left as it is.
  if (session->session.orphaned()) return MSPROBE_SKIP;
  return guarded(MSPROBE_FAILED, [&] {
    const std::unique_ptr<msprobe_session> owner(session);
    return owner->session.close();
  });
}

msprobe_status msprobe_session_info(msprobe_session* session, msprobe_info* info) {
  return with(session, [&](Session& s) {
    msprobe_info known = known_part(info);
    s.get_info(known);
    give_known_part(info, known);
    return MSPROBE_OK;
  });
}

const char* msprobe_session_setting(msprobe_session* session, const char* key) {
  const char* value = "null";
  with(session, [&](Session& s) {
    value = s.setting(&needed(key, "the key"));
    return MSPROBE_OK;
  });
  return value;
}

const volatile int* msprobe_session_running(msprobe_session* session) {
  static const int kNever = 0;
  static_assert(sizeof(std::atomic<int>) == sizeof(int));
  if (session == nullptr) return &kNever;
  return reinterpret_cast<const volatile int*>(&session->session.running());
}

msprobe_status msprobe_set_rank(msprobe_session* session, int64_t rank) {
  return with(session, [&](Session& s) { return s.set_rank(rank); });
}

msprobe_status msprobe_start(msprobe_session* session, msprobe_decision* decision, int* first_time) {
  msprobe_decision made = MSPROBE_NOT_NOW;
  bool first = false;
  const msprobe_status status = with(session, [&](Session& s) { return s.start(made, first); });
  if (decision != nullptr) *decision = made;
  if (first_time != nullptr) *first_time = first ? 1 : 0;
  return status;
}

msprobe_status msprobe_stop(msprobe_session* session) {
  return with(session, [](Session& s) { return s.stop(); });
}

msprobe_status msprobe_step(msprobe_session* session) {
  return with(session, [](Session& s) { return s.step(); });
}

msprobe_status msprobe_set_risk(msprobe_session* session, const char* operation, const char* risk) {
  return with(session, [&](Session& s) {
    return s.set_risk(&needed(operation, "the operation"), &needed(risk, "the risk"));
  });
}

msprobe_status msprobe_set_init_step(msprobe_session* session, uint64_t step) {
  return with(session, [&](Session& s) { return s.set_init_step(step); });
}

msprobe_status msprobe_set_dump_path(msprobe_session* session, const char* path) {
  return with(session, [&](Session& s) { return s.set_dump_path(&needed(path, "the folder")); });
}

msprobe_status msprobe_restart_step(msprobe_session* session) {
  return with(session, [](Session& s) { return s.restart_step(); });
}

msprobe_status msprobe_drop_step(msprobe_session* session) {
  return with(session, [](Session& s) { return s.drop_step(); });
}

msprobe_status msprobe_set_recording(msprobe_session* session, int on) {
  return with(session, [&](Session& s) { return s.set_recording(on != 0); });
}

msprobe_status msprobe_set_tokens(msprobe_session* session, int64_t begin, int64_t end) {
  return with(session, [&](Session& s) { return s.set_tokens(begin, end); });
}

msprobe_status msprobe_flush(msprobe_session* session) {
  return with(session, [](Session& s) { return s.flush(); });
}

msprobe_status msprobe_reload(msprobe_session* session, int* changed) {
  if (changed != nullptr) *changed = 0;
  return with(session, [&](Session& s) {
    bool other = false;
    const msprobe_status status = s.reload(other);
    if (changed != nullptr) *changed = other ? 1 : 0;
    return status;
  });
}

msprobe_status msprobe_log_error(msprobe_session* session, const char* kind, const char* text) {
  return with_recorder(session, [&](Recorder& r) {
    return r.log_error(&needed(kind, "the kind of the error"), &needed(text, "the text of the error"));
  });
}

msprobe_status msprobe_intern(const char* name, uint32_t* id) {
  return guarded(MSPROBE_FAILED, [&] {
    needed(id, "the output pointer of the number") = intern(&needed(name, "the name"));
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_enter(msprobe_session* session, msprobe_kind kind, uint32_t name,
                             msprobe_event* event) {
  if (event != nullptr) *event = {};
  return with(session, [&](Session& s) {
    msprobe_event& entered = needed(event, "the output pointer of the event");
    if (s.running().load(std::memory_order_relaxed) == 0) return MSPROBE_SKIP;
    return s.locked([&](Recorder& r) { return r.enter(kind == MSPROBE_KIND_MODULE, name, entered); });
  });
}

msprobe_status msprobe_leave(msprobe_session* session, msprobe_event* event) {
  return with(session, [&](Session& s) {
    const msprobe_event& left = needed(event, "the event");
    if (left.step == 0) return MSPROBE_SKIP;  // nothing waits for an event that was never entered
    return s.locked([&](Recorder& r) { return r.leave(left); });
  });
}

msprobe_status msprobe_enter_backward(msprobe_session* session, const msprobe_event* forward,
                                      msprobe_event* event) {
  return with(session, [&](Session& s) {
    const msprobe_event before = needed(forward, "the forward's event");
    needed(event, "the output pointer of the event") = {};
    if (before.step == 0 || before.nested != 0 || before.backward != 0) return MSPROBE_SKIP;
    return s.locked([&](Recorder& r) { return r.enter_backward(before, *event); });
  });
}

msprobe_status msprobe_parameter_gradient(msprobe_session* session, uint32_t module, const char* parameter,
                                          uint32_t expected, msprobe_builder** builder) {
  if (builder != nullptr) *builder = nullptr;
  return with(session, [&](Session& s) {
    needed(builder, "the output pointer of the builder");
    const char* const key = &needed(parameter, "the name of the parameter");
    return hand_out(s.build([&](Recorder& r) { return r.begin_parameter_gradient(module, key, expected); }),
                    builder);
  });
}

msprobe_status msprobe_probe_gradient(msprobe_session* session, const char* parameter,
                                      const msprobe_tensor* gradient) {
  return with(session, [&](Session& s) {
    return s.probe_gradient(&needed(parameter, "the name of the parameter"), borrowed_view(gradient));
  });
}

msprobe_status msprobe_set_pseudo_parent(msprobe_session* session, const char* name) {
  return with_recorder(session, [&](Recorder& r) { return r.set_pseudo_parent(name); });
}

msprobe_status msprobe_describe_training(msprobe_session* session, const char* json, size_t size) {
  return with_recorder(session, [&](Recorder& r) {
    return r.describe_training(std::string_view(&needed(json, "the description"), size));
  });
}

msprobe_status msprobe_set_micro_step(msprobe_session* session, uint32_t micro_step) {
  return with_recorder(session, [&](Recorder& r) { return r.set_micro_step(micro_step); });
}

msprobe_status msprobe_use_stack(msprobe_session* session, const msprobe_event* event, uint64_t key) {
  return with_recorder(session, [&](Recorder& r) { return r.use_stack(needed(event, "the event"), key); });
}

msprobe_status msprobe_define_stack(msprobe_session* session, uint64_t key, const char* const* frames,
                                    size_t count) {
  return with(session, [&](Session& s) {
    std::vector<std::string> texts;
    if (count > 0) needed(frames, "the list of frames");
    for (size_t i = 0; i < count; ++i) texts.emplace_back(&needed(frames[i], "a frame"));
    return s.locked([&](Recorder& r) { return r.define_stack(key, std::move(texts)); });
  });
}

msprobe_status msprobe_section_begin(msprobe_session* session, const msprobe_event* event,
                                     msprobe_section section, msprobe_builder** builder) {
  if (builder != nullptr) *builder = nullptr;
  return with(session, [&](Session& s) {
    needed(builder, "the output pointer of the builder");
    if (section < MSPROBE_INPUT || section > MSPROBE_BUFFERS) throw InvalidCall("unknown section");
    const msprobe_event& filled = needed(event, "the event");
    if (filled.entry == 0) return hand_out(nullptr, builder);
    return hand_out(s.build([&](Recorder& r) { return r.begin_section(filled, section); }), builder);
  });
}

msprobe_status msprobe_save_begin(msprobe_session* session, const char* name, int gradient,
                                  msprobe_builder** builder, uint64_t* gradient_entry) {
  if (builder != nullptr) *builder = nullptr;
  if (gradient_entry != nullptr) *gradient_entry = 0;
  return with(session, [&](Session& s) {
    needed(builder, "the output pointer of the builder");
    std::uint64_t entry = 0;
    const msprobe_status status =
        hand_out(s.begin_save(&needed(name, "the name"), gradient != 0, entry), builder);
    if (gradient_entry != nullptr) *gradient_entry = entry;
    return status;
  });
}

msprobe_status msprobe_fill_gradient(msprobe_session* session, uint64_t gradient_entry, const char* path,
                                     const struct msprobe_tensor* tensor) {
  return with(session, [&](Session& s) {
    const msprobe_tensor known = known_part(tensor);
    const auto owner = owner_of(known);
    return s.fill_gradient(gradient_entry, &needed(path, "the path"), known);
  });
}

msprobe_status msprobe_builder_commit(msprobe_builder* builder) {
  return with(builder, [&](Builder& b) {
    const std::unique_ptr<msprobe_builder> owner(builder);
    return b.commit();
  });
}

msprobe_status msprobe_builder_abort(msprobe_builder* builder) {
  return with(builder, [&](Builder&) {
    delete builder;
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_open_list(msprobe_builder* builder, const char* key) {
  return with(builder, [&](Builder& b) { return b.open(key, false); });
}

msprobe_status msprobe_open_object(msprobe_builder* builder, const char* key) {
  return with(builder, [&](Builder& b) { return b.open(key, true); });
}

msprobe_status msprobe_close(msprobe_builder* builder) {
  return with(builder, [](Builder& b) { return b.close(); });
}

msprobe_status msprobe_add_null(msprobe_builder* builder, const char* key) {
  return with(builder, [&](Builder& b) { return b.add_null(key); });
}

msprobe_status msprobe_add_bool(msprobe_builder* builder, const char* key, const char* type, int value) {
  return with(builder, [&](Builder& b) { return b.add_bool(key, type, value != 0); });
}

msprobe_status msprobe_add_int(msprobe_builder* builder, const char* key, const char* type, int64_t value) {
  return with(builder, [&](Builder& b) { return b.add_int(key, type, value); });
}

msprobe_status msprobe_add_double(msprobe_builder* builder, const char* key, const char* type, double value) {
  return with(builder, [&](Builder& b) { return b.add_double(key, type, value); });
}

msprobe_status msprobe_add_text(msprobe_builder* builder, const char* key, const char* type,
                                const char* value, size_t size) {
  return with(builder, [&](Builder& b) {
    if (size > 0) needed(value, "the text");
    return b.add_text(key, type, size > 0 ? std::string_view(value, size) : std::string_view());
  });
}

msprobe_status msprobe_add_json(msprobe_builder* builder, const char* key, const char* json, size_t size) {
  return with(builder,
              [&](Builder& b) { return b.add_json(key, std::string_view(&needed(json, "the JSON"), size)); });
}

msprobe_status msprobe_add_tensor(msprobe_builder* builder, const char* key, const msprobe_tensor* tensor,
                                  uint64_t* slot) {
  if (slot != nullptr) *slot = 0;
  return guarded(MSPROBE_FAILED, [&] {
    const msprobe_tensor known = known_part(tensor);
    auto owner = owner_of(known);
    return with(builder, [&](Builder& b) { return b.add_tensor(key, known, std::move(owner), slot); });
  });
}

msprobe_status msprobe_fill_statistics(msprobe_session* session, uint64_t slot,
                                       const msprobe_statistics* statistics) {
  return with_recorder(session, [&](Recorder& r) {
    return r.fill_slot(slot, {msprobe::collector::measured_of(known_part(statistics)), std::nullopt});
  });
}

msprobe_status msprobe_fill_tensor(msprobe_session* session, uint64_t slot, const msprobe_tensor* tensor) {
  return with(session, [&](Session& s) { return s.fill_tensor(slot, filled_view(known_part(tensor))); });
}

msprobe_status msprobe_hold(msprobe_session* session, const msprobe_event* event) {
  return with_recorder(session, [&](Recorder& r) { return r.hold(needed(event, "the event"), true); });
}

msprobe_status msprobe_release(msprobe_session* session, const msprobe_event* event) {
  return with_recorder(session, [&](Recorder& r) { return r.hold(needed(event, "the event"), false); });
}

msprobe_status msprobe_tensor_from_dlpack(const void* dl_tensor, msprobe_tensor* tensor) {
  return guarded(MSPROBE_INVALID, [&] {
    if (dl_tensor == nullptr) throw InvalidCall("the DLTensor is missing");
    known_part(tensor);
    give_known_part(tensor, tensor_from_dlpack(dl_tensor));
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_compute_statistics(const msprobe_tensor* tensor, msprobe_statistics* statistics) {
  return guarded(MSPROBE_FAILED, [&] {
    const TensorView view = borrowed_view(tensor);
    known_part(statistics);
    give_known_part(statistics, statistics_of(view.count > 0 ? measure(view) : Measured()));
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_compute_crc32(const msprobe_tensor* tensor, uint32_t* crc) {
  return guarded(MSPROBE_FAILED, [&] {
    needed(crc, "the output pointer of the checksum") = crc32_of(borrowed_view(tensor));
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_compute_xor(const msprobe_tensor* tensor, uint64_t* value) {
  return guarded(MSPROBE_FAILED, [&] {
    needed(value, "the output pointer of the checksum") = xor_of(borrowed_view(tensor));
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_write_tensor(const char* path, const msprobe_tensor* tensor) {
  return guarded(MSPROBE_FAILED, [&] {
    write_tensor_file(&needed(path, "the path"), borrowed_view(tensor));
    return MSPROBE_OK;
  });
}

}  // extern "C"
