// SPDX-License-Identifier: Apache-2.0
// Any sequence of calls of the collector's interface: whatever is called when, its files are JSON.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/dump_json.hpp"
#include "dump/stack_json.hpp"
#include "fuzz_target.hpp"
#include "msprobe/collector.h"
#include "support/byte_source.hpp"

namespace {

namespace fs = std::filesystem;

class Calls {
 public:
  Calls(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : *at_++; }
  std::string text() {
    const std::size_t size = byte() % 12;
    std::string result;
    // Bytes as they come, but for the NUL that ends a text.
    for (std::size_t i = 0; i < size; ++i) result += static_cast<char>(byte() | 1);
    return result;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

constexpr std::array<const char*, 6> kNames = {"Functional.relu", "Tensor.add",     "Module.a.A",
                                               "Module.a.b.B",    "Module.a.b.c.C", "Torch.\"\n\xff"};

/// A tensor whose elements are all in a buffer, whatever its geometry says within limits.
struct AnyTensor {
  explicit AnyTensor(Calls& input) {
    buffer.resize(4096);
    for (std::size_t i = 0; i < 64; ++i) buffer[i * 61] = input.byte();
    tensor.struct_size = sizeof tensor;
    tensor.dtype = input.byte() % 26;
    if (tensor.dtype == 25) tensor.dtype = MSPROBE_DTYPE_OTHER;
    tensor.flags = input.byte() & 0xbf;
    tensor.ndim = input.byte() % 4;
    for (std::size_t axis = 0; axis < tensor.ndim; ++axis) {
      shape[axis] = input.byte() % 5;
      strides[axis] = input.byte() % 9 - 4;
    }
    tensor.shape = shape.data();
    if (input.byte() % 2 == 0) tensor.strides = strides.data();
    if (input.byte() % 8 != 0) tensor.data = buffer.data() + 2048 + input.byte() % 16;
    const std::uint8_t more = input.byte() % 16;
    if (more == 0) tensor.extra = "{\"placements\": [1, {\"a\": NaN}]}";
    if (more < 4) tensor.flags |= MSPROBE_TENSOR_LATER;
    if (more == 1) tensor.data = nullptr;
    if (input.byte() % 16 == 0) tensor.extra = "{broken";
  }
  std::vector<std::uint8_t> buffer;
  std::array<std::int64_t, 4> shape = {};
  std::array<std::int64_t, 4> strides = {};
  msprobe_tensor tensor = {};
};

constexpr std::array<const char*, 6> kSections = {
    R"({})",
    R"({"summary_mode": "md5", "data_mode": ["output"]})",
    R"({"summary_mode": "xor", "tensor_list": ["relu"]})",
    R"({"list": ["Module.a"]})",
    R"({"slice": [{"dim": 0, "begin": -2}, {"dim": 1, "size": 3, "end": 1}]})",
    R"({"overflow_nums": 2})",
};
constexpr std::array<const char*, 5> kTasks = {"statistics", "tensor", "structure", "overflow_check",
                                               "grad_probe"};
constexpr std::array<const char*, 4> kLevels = {"L0", "L1", "mix", "debug"};

template <typename T, std::size_t N>
T pick(const std::array<T, N>& of, std::uint8_t which) {
  return of[which % N];
}

void call_anything(Calls& input, msprobe_session* session) {
  std::vector<msprobe_event> events(1);
  std::vector<msprobe_builder*> builders;
  std::vector<std::uint64_t> slots(1);
  std::uint64_t gradient = 0;
  const auto event = [&]() -> msprobe_event& { return events[input.byte() % events.size()]; };
  const auto name = [&] {
    std::uint32_t id = 0;
    msprobe_intern(pick(kNames, input.byte()), &id);
    return id;
  };
  const auto keep = [&](msprobe_builder* builder) {
    if (builder != nullptr) builders.push_back(builder);
  };
  while (!input.empty()) {
    msprobe_builder* const builder = builders.empty() ? nullptr : builders[input.byte() % builders.size()];
    const std::string text = input.text();
    const char* const key = input.byte() % 2 == 0 ? nullptr : text.c_str();
    msprobe_builder* made = nullptr;
    switch (input.byte() % 31) {
      case 0:
      case 1:
      case 2: {
        msprobe_event entered = {};
        msprobe_enter(session, input.byte() % 2 == 0 ? MSPROBE_KIND_API : MSPROBE_KIND_MODULE, name(),
                      &entered);
        events.push_back(entered);
        break;
      }
      case 3:
      case 4:
        msprobe_leave(session, &event());
        break;
      case 5: {
        msprobe_event entered = {};
        const msprobe_event forward = event();
        msprobe_enter_backward(session, &forward, &entered);
        events.push_back(entered);
        break;
      }
      case 6:
      case 7:
        msprobe_section_begin(session, &event(), static_cast<msprobe_section>(input.byte() % 5), &made);
        keep(made);
        break;
      case 8:
        msprobe_parameter_gradient(session, name(), text.c_str(), input.byte() % 3, &made);
        keep(made);
        break;
      case 9:
        msprobe_save_begin(session, text.c_str(), input.byte() % 2, &made, &gradient);
        keep(made);
        break;
      case 10:
      case 11:
        if (builder == nullptr) break;
        std::erase(builders, builder);
        input.byte() % 4 == 0 ? msprobe_builder_abort(builder) : msprobe_builder_commit(builder);
        break;
      case 12:
        msprobe_open_list(builder, key);
        break;
      case 13:
        msprobe_open_object(builder, key);
        break;
      case 14:
        msprobe_close(builder);
        break;
      case 15:
        msprobe_add_text(builder, key, "str", text.data(), text.size());
        break;
      case 16:
        msprobe_add_json(builder, key, text.data(), text.size());
        break;
      case 17:
      case 18:
      case 19: {
        AnyTensor any(input);
        std::uint64_t slot = 0;
        msprobe_add_tensor(builder, key, &any.tensor, &slot);
        slots.push_back(slot);
        break;
      }
      case 30: {
        AnyTensor any(input);
        msprobe_probe_gradient(session, text.c_str(), &any.tensor);
        break;
      }
      case 20: {
        AnyTensor any(input);
        msprobe_fill_gradient(session, gradient, text.c_str(), &any.tensor);
        break;
      }
      case 21: {
        msprobe_statistics statistics = {};
        statistics.struct_size = sizeof statistics;
        statistics.count = input.byte();
        const std::uint64_t slot = slots[input.byte() % slots.size()];
        if (statistics.count % 2 == 0) {
          msprobe_fill_statistics(session, slot, &statistics);
        } else {
          AnyTensor any(input);
          msprobe_fill_tensor(session, slot, &any.tensor);
        }
        break;
      }
      case 22:
        input.byte() % 2 == 0 ? msprobe_hold(session, &event()) : msprobe_release(session, &event());
        break;
      case 23:
        msprobe_start(session, nullptr, nullptr);
        break;
      case 24:
        msprobe_stop(session);
        break;
      case 25:
        msprobe_step(session);
        break;
      case 26:
        msprobe_set_rank(session, input.byte() % 3);
        break;
      case 27: {
        const char* frames[] = {text.c_str(), "frame"};
        msprobe_define_stack(session, input.byte() % 4, frames, input.byte() % 3);
        msprobe_use_stack(session, &event(), input.byte() % 4);
        break;
      }
      case 28:
        msprobe_set_pseudo_parent(session, key);
        msprobe_set_micro_step(session, input.byte());
        break;
      default:
        msprobe_flush(session);
        break;
    }
  }
  for (msprobe_builder* builder : builders) msprobe_builder_abort(builder);
}

/// Throws FormatError if a file is not whole.
void read_all(const std::string& folder) {
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    const std::string path = file.path().string();
    if (path.ends_with("dump.json") || path.ends_with("debug.json")) {
      msprobe::dump::read_dump_json(*msprobe::open_file(path), [](std::string_view, const auto&) {});
    } else if (path.ends_with("construct.json")) {
      msprobe::dump::read_construct_json(*msprobe::open_file(path));
    } else if (path.ends_with("stack.json")) {
      msprobe::dump::read_stack_json(*msprobe::open_file(path));
    }
  }
}

}  // namespace

FUZZ_TARGET(collector_calls)(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return;
  Calls input(data, size);
  std::string folder = (fs::temp_directory_path() / "msprobe-fuzz-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return;
  const std::string task = pick(kTasks, input.byte());
  const std::string config = R"({"task": ")" + task + R"(", "level": ")" + pick(kLevels, input.byte()) +
                             R"(", "dump_path": ")" + folder + "/d\", \"" + task +
                             "\": " + pick(kSections, input.byte()) + "}";
  msprobe_session* session = nullptr;
  if (msprobe_session_open(nullptr, config.c_str(), nullptr, &session) == MSPROBE_OK) {
    msprobe_start(session, nullptr, nullptr);
    call_anything(input, session);
    msprobe_session_close(session);
    read_all(folder);
  }
  fs::remove_all(folder);
}
