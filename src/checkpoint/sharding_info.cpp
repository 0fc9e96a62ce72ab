// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/sharding_info.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::string_view kNote = "DCP_SHARDING_INFO";

/// {"name": {"saved_offsets": [0, 3]}, …}; three levels and no more, so nothing here recurses.
class InfoHandler {
 public:
  explicit InfoHandler(SavedOffsets& offsets) : offsets_(offsets) {}

  bool null() { return false; }
  bool boolean(bool) { return false; }
  bool number_float(double, const std::string&) { return false; }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool string(std::string&) { return false; }
  bool number_integer(std::int64_t) { return false; }
  bool number_unsigned(std::uint64_t value) {
    if (depth_ != 3 || value > INT64_MAX || offset_.size() == formats::kMaxRank) return false;
    offset_.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool start_object(std::size_t) { return ++depth_ < 3; }
  bool key(std::string& name) {
    if (depth_ == 1)
      name_ = std::move(name);
    else if (name != "saved_offsets")
      return false;
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    offset_.clear();
    return ++depth_ == 3;
  }
  bool end_array() {
    --depth_;
    offsets_[std::move(name_)] = std::move(offset_);
    offset_.clear();
    name_.clear();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  SavedOffsets& offsets_;
  int depth_ = 0;
  std::string name_;
  Shape offset_;
};

}  // namespace

std::optional<SavedOffsets> saved_offsets(const formats::SafetensorsFile& file, const std::string& path) {
  const auto& metadata = file.metadata();
  const auto note = std::ranges::find_if(metadata, [](const auto& m) { return m.first == kNote; });
  if (note == metadata.end()) return {};
  SavedOffsets offsets;
  InfoHandler handler(offsets);
  if (!nlohmann::json::sax_parse(note->second, &handler)) {
    throw FormatError(display(path), "its DCP_SHARDING_INFO is not what PyTorch writes");
  }
  return offsets;
}

}  // namespace msprobe::checkpoint
