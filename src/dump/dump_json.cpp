// SPDX-License-Identifier: Apache-2.0
#include "dump/dump_json.hpp"

#include <vector>

#include "dump/json_stream.hpp"

namespace msprobe::dump {
namespace {

class DumpHandler : public HandlerFailure {
 public:
  DumpHandler(Header& header, const EntryVisitor& visit) : header_(header), visit_(visit) {}

  bool Null() { return scalar(NodeKind::null, {}); }
  bool Bool(bool value) { return scalar(NodeKind::boolean, {}, value); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view digits(text, size);
    const bool real = digits.find_first_of(".eENI") != std::string_view::npos;
    return scalar(real ? NodeKind::real : NodeKind::integer, digits);
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return scalar(NodeKind::string, {text, size});
  }
  bool StartObject() { return start(NodeKind::object); }
  bool StartArray() { return start(NodeKind::array); }
  bool EndObject(rapidjson::SizeType) { return end(); }
  bool EndArray(rapidjson::SizeType) { return end(); }

  bool Key(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view key(text, size);
    if (depth_ == 1) {
      root_key_ = key;
    } else if (in_data_ && depth_ == 2) {
      name_ = key;
    } else if (in_data_) {
      entry_.set_key(key);
    }
    return true;
  }

  // RapidJSON asks for these although numbers arrive as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

 private:
  bool scalar(NodeKind kind, std::string_view text, bool boolean = false) {
    if (depth_ == 0) return fail("the top level is not an object");
    if (in_data_) {
      entry_.add_scalar(kind, text, boolean);
      return depth_ == 2 ? finish_entry() : fits();
    }
    if (depth_ == 1) {
      if (root_key_ == "data") return fail("'data' is not an object");
      if (kind == NodeKind::string) {
        if (root_key_ == "task") header_.task = text;
        if (root_key_ == "level") header_.level = text;
        if (root_key_ == "framework") header_.framework = text;
      }
    }
    return true;
  }

  bool start(NodeKind kind) {
    if (depth_ == 0 && kind != NodeKind::object) return fail("the top level is not an object");
    if (depth_ >= kMaxDepth) return fail("nested more than " + std::to_string(kMaxDepth) + " levels deep");
    if (in_data_) {
      open_.push_back(entry_.open(kind));
    } else if (depth_ == 1 && root_key_ == "data") {
      if (kind != NodeKind::object) return fail("'data' is not an object");
      if (header_.has_data) return fail("'data' appears twice");
      header_.has_data = true;
      in_data_ = true;
    }
    ++depth_;
    return fits();
  }

  bool end() {
    --depth_;
    if (!in_data_) return true;
    if (depth_ == 1) {
      in_data_ = false;
      return true;
    }
    entry_.close(open_.back());
    open_.pop_back();
    return depth_ == 2 ? finish_entry() : true;
  }

  bool finish_entry() {
    visit_(name_, entry_);
    entry_.clear();
    return true;
  }

  bool fits() {
    if (entry_.memory() <= kMaxEntryMemory) return true;
    return fail("one entry of 'data' takes more than " + human_bytes(kMaxEntryMemory) + ": " +
                display(name_));
  }

  Header& header_;
  const EntryVisitor& visit_;
  Entry entry_;
  std::vector<Entry::Index> open_;
  std::string root_key_;
  std::string name_;
  int depth_ = 0;
  bool in_data_ = false;
};

}  // namespace

Header read_dump_json(const ByteSource& file, const EntryVisitor& visit) {
  Header header;
  DumpHandler handler(header, visit);
  parse_json(file, handler);
  return header;
}

}  // namespace msprobe::dump
