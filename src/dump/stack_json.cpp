// SPDX-License-Identifier: Apache-2.0
#include "dump/stack_json.hpp"

#include <algorithm>
#include <utility>

#include "dump/json_stream.hpp"

namespace msprobe::dump {
namespace {

/// Collects both layouts at once; which one the file has is known when the key "0" was seen
/// (spec/dump-format.md 4.1).
class StackHandler : public HandlerFailure {
 public:
  explicit StackHandler(StackTable& table) : table_(table) {}

  bool Null() { return other(); }
  bool Bool(bool) { return other(); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return other(); }
  bool Int(int) { return other(); }
  bool Uint(unsigned) { return other(); }
  bool Int64(std::int64_t) { return other(); }
  bool Uint64(std::uint64_t) { return other(); }
  bool Double(double) { return other(); }

  bool String(const char* text, rapidjson::SizeType size, bool) {
    if (depth_ == 2) lists_[0].emplace_back(text, size);
    if (depth_ == 3 && (list_ == 0 || list_ == 1)) lists_[list_].emplace_back(text, size);
    if (depth_ == 3 && list_ > 1) regular_ = false;
    if (depth_ == 2) flat_ = true;
    return depth_ > 0 || fail("the top level is not an object");
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (depth_ == 1) key_.assign(text, size);
    return true;
  }
  bool StartObject() {
    if (depth_ > 0) regular_ = false;
    return deeper();
  }
  bool StartArray() {
    if (depth_ == 0) return fail("the top level is not an object");
    if (depth_ == 1) {
      lists_[0].clear();
      lists_[1].clear();
      list_ = -1;
      flat_ = false;
      regular_ = true;
    } else if (depth_ == 2) {
      ++list_;
    } else {
      regular_ = false;
    }
    return deeper();
  }
  bool EndObject(rapidjson::SizeType) {
    --depth_;
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    if (--depth_ == 1 && regular_) finish_value();
    return true;
  }

  void finish() {
    const auto& chosen = grouped_layout_ ? grouped_ : plain_;
    for (const auto& [entry, stack] : chosen) table_.add_entry(entry, stack);
  }

 private:
  bool other() {
    regular_ = false;
    return depth_ > 0 || fail("the top level is not an object");
  }
  bool deeper() { return ++depth_ < kMaxNesting || fail("nested too deep"); }

  void finish_value() {
    if (key_ == "0" && (list_ >= 0 || flat_)) grouped_layout_ = true;
    if (list_ < 0) {
      plain_.emplace_back(key_, table_.add_stack(std::move(lists_[0])));
    } else if (list_ == 1 && !flat_) {
      const std::uint32_t stack = table_.add_stack(std::move(lists_[1]));
      for (std::string& entry : lists_[0]) grouped_.emplace_back(std::move(entry), stack);
    }
    lists_[0] = {};
    lists_[1] = {};
  }

  static constexpr int kMaxNesting = 64;
  StackTable& table_;
  std::vector<std::pair<std::string, std::uint32_t>> plain_;
  std::vector<std::pair<std::string, std::uint32_t>> grouped_;
  std::string key_;
  std::vector<std::string> lists_[2];
  int list_ = -1;
  int depth_ = 0;
  bool flat_ = false;
  bool regular_ = true;
  bool grouped_layout_ = false;
};

}  // namespace

const StackTable::Frames* StackTable::find(std::string_view entry) const {
  const auto found = index_.find(entry);
  return found == index_.end() ? nullptr : &stacks_[found->second];
}

std::uint32_t StackTable::add_stack(Frames frames) {
  stacks_.push_back(std::move(frames));
  return static_cast<std::uint32_t>(stacks_.size() - 1);
}

std::string user_frame(const std::vector<std::string>& frames, const std::vector<std::string>& framework) {
  const auto own = [&](const std::string& frame) {
    const std::size_t end = std::min(frame.find(", line "), frame.size());
    const std::string_view file = std::string_view(frame).substr(0, end);
    return std::none_of(framework.begin(), framework.end(),
                        [&](const std::string& part) { return file.find(part) != std::string_view::npos; });
  };
  auto found = std::find_if(frames.begin(), frames.end(), own);
  if (found == frames.end()) found = frames.begin();
  if (found == frames.end()) return {};
  std::string line = found->substr(found->starts_with("File ") ? 5 : 0);
  // The source line stands on a line of its own.
  if (const std::size_t at = line.find(", \n "); at != std::string::npos) line.replace(at, 4, ": ");
  return line;
}

StackTable read_stack_json(const ByteSource& file) {
  StackTable table;
  StackHandler handler(table);
  parse_json(file, handler);
  handler.finish();
  return table;
}

}  // namespace msprobe::dump
