// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/adump_header.hpp"
#include "formats/protobuf.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

// Field numbers of the message DumpData; the header is described in docs/formats.md, "Kernel dumps".
enum DumpField : std::uint64_t {
  kVersion = 1,
  kOutput = 3,
  kInput = 4,
  kBuffer = 5,
  kOpName = 6,
  kAttr = 7,
  kSpace = 8
};

class HeaderReader {
 public:
  explicit HeaderReader(AdumpFile& dump)
      : dump_(dump), fail_([&dump](const std::string& reason) { fail_adump(dump, reason); }) {}

  void read(std::string_view message) {
    ProtobufReader reader(message, fail_);
    ProtobufField field;
    std::optional<std::string> attribute;
    while (reader.next(field)) {
      if (!field.is_bytes) continue;
      switch (field.number) {
        case kVersion:
          dump_.version = field.bytes;
          break;
        case kOpName:
          dump_.op_name = field.bytes;
          break;
        case kOutput:
          item(AdumpRole::output, field.bytes, 6);
          break;
        case kInput:
          item(AdumpRole::input, field.bytes, 5);
          break;
        case kBuffer:
          item(AdumpRole::buffer, field.bytes, 3);
          break;
        case kSpace:
          item(AdumpRole::space, field.bytes, 3);
          break;
        case kAttr:
          if (!attribute) attribute = attribute_value(field.bytes);
          break;
        default:
          break;
      }
    }
    // The items' bytes follow in this order, regardless of the order of the fields.
    std::ranges::stable_sort(dump_.items,
                             [](const AdumpItem& a, const AdumpItem& b) { return a.role < b.role; });
    number_items(dump_);
    if (attribute) apply_slices(*attribute, dump_);
  }

 private:
  void item(AdumpRole role, std::string_view message, std::uint64_t size_field) {
    constexpr std::uint64_t kType = 1;
    constexpr std::uint64_t kFormat = 2;
    constexpr std::uint64_t kShape = 3;
    AdumpItem& item = add_item(dump_, role);
    const bool is_tensor = role == AdumpRole::input || role == AdumpRole::output;
    ProtobufReader reader(message, fail_);
    ProtobufField field;
    while (reader.next(field)) {
      if (field.number == size_field && !field.is_bytes) {
        item.size = field.value;
      } else if (field.number == kType && !field.is_bytes) {
        item.type = static_cast<std::int64_t>(field.value);
      } else if (is_tensor && field.number == kFormat && !field.is_bytes) {
        item.format = static_cast<std::int64_t>(field.value);
      } else if (is_tensor && field.number == kShape && field.is_bytes) {
        shape(item.shape, field.bytes);
      }
    }
  }

  void shape(std::vector<std::int64_t>& dims, std::string_view message) {
    ProtobufReader reader(message, fail_);
    ProtobufField field;
    while (reader.next(field)) {
      if (field.number != 1) continue;
      if (!field.is_bytes) {
        add_dimension(dump_, dims, field.value);
        continue;
      }
      ProtobufReader packed(field.bytes, fail_);
      while (!packed.empty()) add_dimension(dump_, dims, packed.varint());
    }
  }

  std::string attribute_value(std::string_view message) {
    ProtobufReader reader(message, fail_);
    ProtobufField field;
    std::string value;
    while (reader.next(field)) {
      if (field.number == 2 && field.is_bytes) value = field.bytes;
    }
    return value;
  }

  AdumpFile& dump_;
  ProtobufReader::Fail fail_;
};

bool truthy(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_null()) return false;
  return !(value.is_string() && value.get_ref<const std::string&>().empty()) && !value.empty();
}

/// `{op type}.{op name}.….{thread}.{time}`: the last field but one.
std::optional<std::size_t> thread_of(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  const std::size_t last = name.rfind('.');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const std::size_t before = name.rfind('.', last - 1);
  if (before == std::string_view::npos) return std::nullopt;
  return whole_number<std::size_t>(name.substr(before + 1, last - before - 1));
}

}  // namespace

void read_protobuf_header(std::string_view header, AdumpFile& dump) {
  HeaderReader(dump).read(header);
}

void apply_slices(std::string_view json, AdumpFile& dump) {
  constexpr std::size_t kMaxJson = std::size_t{4} << 20;
  if (json.size() > kMaxJson) fail_adump(dump, "the attribute that describes its slices is too large");
  const nlohmann::json slices = nlohmann::json::parse(json, nullptr, false);
  if (!slices.is_object()) return;  // some other attribute
  const auto mode = slices.find("threadMode");
  if (mode == slices.end() || !truthy(*mode)) return;
  const auto thread = thread_of(dump.file->name());
  if (!thread) fail_adump(dump, "it is sliced, but its name does not give the thread");
  for (AdumpItem& item : dump.items) {
    const bool is_input = item.role == AdumpRole::input;
    if (!is_input && item.role != AdumpRole::output) continue;
    const auto table = slices.find(is_input ? "input_tensor_slice" : "output_tensor_slice");
    const auto broken = [&] { fail_adump(dump, "the attribute that describes its slices is malformed"); };
    if (table == slices.end() || !table->is_array() || *thread >= table->size()) broken();
    const nlohmann::json& of_thread = (*table)[*thread];
    if (!of_thread.is_array() || item.index >= of_thread.size() || !of_thread[item.index].is_array())
      broken();
    std::vector<std::int64_t> shape;
    for (const nlohmann::json& range : of_thread[item.index]) {
      const auto bound = [&](const char* key) {
        if (!range.is_object() || !range.contains(key) || !range[key].is_number_integer()) broken();
        return range[key].get<std::int64_t>();
      };
      const std::int64_t lower = bound("lower");
      const std::int64_t higher = bound("higher");
      if (lower < 0 || higher < lower) broken();
      add_dimension(dump, shape, static_cast<std::uint64_t>(higher - lower));
    }
    item.shape = std::move(shape);
  }
}

}  // namespace msprobe::formats
