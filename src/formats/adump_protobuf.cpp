// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/adump_header.hpp"
#include "formats/message_fields.hpp"
#include "support/ascii.hpp"

namespace msprobe::formats {
namespace {

// Field numbers of the message DumpData; the header is described in docs/formats.md, "Kernel dumps".
enum DumpField : std::uint64_t { kOutput = 3, kInput = 4, kBuffer = 5, kAttr = 7, kSpace = 8 };

constexpr std::string_view kDumpHeader = "kernel dump header";

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

/// Shapes of a sliced dump (FFTS+), out of the JSON in the first attribute.
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

class HeaderReader {
 public:
  explicit HeaderReader(AdumpFile& dump) : dump_(dump) {}

  void read(std::uint64_t begin, std::uint64_t length) {
    std::optional<std::string> attribute;
    each_field(begin, length, [&](const Field& field) {
      if (field.is_bytes(kOutput)) item(AdumpRole::output, field, 6);
      if (field.is_bytes(kInput)) item(AdumpRole::input, field, 5);
      if (field.is_bytes(kBuffer)) item(AdumpRole::buffer, field, 3);
      if (field.is_bytes(kSpace)) item(AdumpRole::space, field, 3);
      if (field.is_bytes(kAttr) && !attribute) attribute = attribute_value(field);
    });
    // The items' bytes follow in this order, regardless of the order of the fields.
    std::ranges::stable_sort(dump_.items,
                             [](const AdumpItem& a, const AdumpItem& b) { return a.role < b.role; });
    number_items(dump_);
    if (attribute) apply_slices(*attribute, dump_);
  }

 private:
  using Field = MessageFields::MessageField;

  template <typename Take>
  void each_field(std::uint64_t begin, std::uint64_t length, const Take& take) const {
    MessageFields fields(*dump_.file, begin, begin + length, kDumpHeader);
    Field field;
    while (fields.next(field)) take(field);
  }

  void item(AdumpRole role, const Field& message, std::uint64_t size_field) {
    constexpr std::uint64_t kType = 1;
    constexpr std::uint64_t kShape = 3;
    AdumpItem& item = add_item(dump_, role);
    const bool is_tensor = role == AdumpRole::input || role == AdumpRole::output;
    each_field(message.offset, message.length, [&](const Field& field) {
      if (field.number == size_field && field.wire == 0) {
        item.size = field.value;
      } else if (field.number == kType && field.wire == 0) {
        item.type = static_cast<std::int64_t>(field.value);
      } else if (is_tensor && field.is_bytes(kShape)) {
        shape(item.shape, field);
      }
    });
  }

  void shape(std::vector<std::int64_t>& dims, const Field& message) {
    each_field(message.offset, message.length, [&](const Field& field) {
      if (field.number == 1 && field.wire == 0) add_dimension(dump_, dims, field.value);
      if (!field.is_bytes(1)) return;
      MessageFields packed(*dump_.file, field.offset, field.offset + field.length, kDumpHeader);
      while (!packed.at_end()) add_dimension(dump_, dims, packed.varint());
    });
  }

  std::string attribute_value(const Field& message) const {
    std::string value;
    each_field(message.offset, message.length, [&](const Field& field) {
      if (field.is_bytes(2)) value = read_text(*dump_.file, field.offset, field.length);
    });
    return value;
  }

  AdumpFile& dump_;
};

}  // namespace

void read_protobuf_header(AdumpFile& dump, std::uint64_t begin, std::uint64_t length) {
  HeaderReader(dump).read(begin, length);
}

}  // namespace msprobe::formats
