// SPDX-License-Identifier: Apache-2.0
#include "precheck/runner/answer.hpp"

#include <algorithm>
#include <cstdint>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "precheck/runner/process.hpp"
#include "precheck/runner/tags.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

using dump::Entry;
using dump::NodeKind;
using Node = Entry::Index;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxAxes = 64;

[[noreturn]] void refuse(std::string_view reason) {
  throw RunnerLost("sent a malformed answer: " + std::string(reason));
}

Entry parse(std::string_view line) {
  Entry entry;
  try {
    entry = dump::read_json(line, "an answer", kMaxDepth);
  } catch (const FormatError&) {
    refuse("it is not JSON");
  }
  if (!entry.is(0, NodeKind::object)) refuse("it is not an object");
  return entry;
}

std::uint64_t integer_at(const Entry& entry, Node node) {
  if (!entry.is(node, NodeKind::integer)) refuse("a number is expected");
  const auto value = entry.integer(node);
  if (!value || *value < 0) refuse("a number is out of range");
  return static_cast<std::uint64_t>(*value);
}

class OutputReader {
 public:
  OutputReader(const Entry& entry, const SharedFile& file, std::vector<std::vector<std::byte>>& bytes)
      : entry_(entry), file_(file), bytes_(bytes), left_(file.size()) {}

  SideOutputs sides(Node node) {
    if (!entry_.is(node, NodeKind::object)) refuse("the sides are not an object");
    SideOutputs outputs;
    const Node reference = entry_.find(node, "reference");
    if (reference == Entry::kNone) refuse("it has no reference");
    outputs.reference = output(reference);
    if (const Node device = entry_.find(node, "device"); device != Entry::kNone)
      outputs.device = output(device);
    if (const Node last = entry_.find(node, "last"); last != Entry::kNone) outputs.last = output(last);
    return outputs;
  }

 private:
  CallOutput output(Node node) {
    CallOutput result;
    if (entry_.is(node, NodeKind::null)) return result;
    if (!entry_.is(node, NodeKind::object)) refuse("an output is not an object");
    Node content = Entry::kNone;
    int members = 0;
    entry_.children(node, [&](Node child) {
      content = child;
      ++members;
    });
    if (members != 1) refuse("an output is expected");
    switch (tag_of(entry_.key(content))) {
      case Tag::tensor:
        result.value = tensor(content);
        break;
      case Tag::list:
        result.value = list(content, false);
        break;
      case Tag::tuple:
        result.value = list(content, true);
        break;
      case Tag::boolean:
        if (!entry_.is(content, NodeKind::boolean)) refuse("true or false is expected");
        result.value =
            ScalarOutput{ScalarOutput::ScalarKind::boolean, entry_.boolean(content) ? "True" : "False"};
        break;
      case Tag::integer:
        result.value = ScalarOutput{ScalarOutput::ScalarKind::integer, std::string(text(content))};
        break;
      case Tag::real:
        result.value = real(content);
        break;
      case Tag::text:
        result.value = ScalarOutput{ScalarOutput::ScalarKind::text, python_repr(text(content))};
        break;
      case Tag::other:
        result.value = OtherOutput{std::string(text(content))};
        break;
      default:
        refuse("an output has an unknown kind");
    }
    return result;
  }

  static Tag tag_of(std::string_view name) {
    const auto* const found = std::find(kTagNames.begin(), kTagNames.end(), name);
    if (found == kTagNames.end()) refuse("an output has an unknown kind");
    return static_cast<Tag>(found - kTagNames.begin());
  }

  std::string_view text(Node node) const {
    if (!entry_.is(node, NodeKind::string)) refuse("text is expected");
    return entry_.text(node);
  }

  CallOutput::List list(Node node, bool tuple) {
    CallOutput::List result;
    result.tuple = tuple;
    entry_.children(node, [&](Node child) { result.elements.push_back(output(child)); });
    return result;
  }

  ScalarOutput real(Node node) const {
    const std::string_view spelled = text(node);
    const auto value = parse_number(spelled);
    if (!value) refuse("a number is expected");
    return {ScalarOutput::ScalarKind::real, std::string(spelled), *value};
  }

  TensorOutput tensor(Node node) {
    std::vector<Node> parts;
    if (entry_.is(node, NodeKind::array)) entry_.children(node, [&](Node child) { parts.push_back(child); });
    if (parts.size() != 3 || !entry_.is(parts[1], NodeKind::array))
      refuse("a tensor does not have three parts");
    const auto dtype = tensor::dtype_from_torch(text(parts[0]));
    if (!dtype) refuse("a tensor's type is unknown");
    TensorOutput result;
    result.dtype = *dtype;
    std::uint64_t size = tensor::info(*dtype).size;
    bool empty = false;
    bool too_large = false;
    entry_.children(parts[1], [&](Node child) {
      if (result.shape.size() == kMaxAxes) refuse("a tensor has too many axes");
      result.shape.push_back(integer_at(entry_, child));
      empty = empty || result.shape.back() == 0;
      too_large |= __builtin_mul_overflow(size, result.shape.back(), &size);
    });
    if (empty) return result;
    if (too_large || size > left_) refuse("a tensor is larger than the data sent");
    left_ -= size;
    std::vector<std::byte>& bytes = bytes_.emplace_back(size);
    if (!file_.read_at(integer_at(entry_, parts[2]), bytes)) refuse("a tensor is not where it should be");
    result.bytes = bytes;
    return result;
  }

  const Entry& entry_;
  const SharedFile& file_;
  std::vector<std::vector<std::byte>>& bytes_;
  std::uint64_t left_;
};

}  // namespace

RunnerHello read_hello(std::string_view line) {
  const Entry entry = parse(line);
  const auto text = [&](std::string_view key) { return std::string(entry.string(0, key)); };
  RunnerHello hello{text("torch"), text("device"), text("fatal"), text("mindspore")};
  if (hello.fatal.empty() && (hello.torch.empty() || hello.device.empty())) refuse("it has no version");
  return hello;
}

CallAnswer read_answer(std::string_view line, std::uint64_t id, const SharedFile& outputs) {
  const Entry entry = parse(line);
  const Node number = entry.find(0, "id");
  if (number == Entry::kNone || integer_at(entry, number) != id) refuse("it answers another request");
  CallAnswer answer;
  answer.leave = entry.flag(0, "leave");
  OutputReader reader(entry, outputs, answer.bytes);
  if (const Node forward = entry.find(0, "forward"); forward != Entry::kNone)
    answer.forward = reader.sides(forward);
  if (const Node backward = entry.find(0, "backward"); backward != Entry::kNone)
    answer.backward = reader.sides(backward);
  if (const Node error = entry.find(0, "error"); error != Entry::kNone) {
    if (!entry.is(error, NodeKind::object)) refuse("the error is not an object");
    const auto text = [&](std::string_view key) { return std::string(entry.string(error, key)); };
    answer.error = CallError{text("stage"), text("kind"), text("text"), entry.flag(error, "ours")};
  }
  if (!answer.forward && !answer.error) refuse("it has neither outputs nor an error");
  return answer;
}

}  // namespace msprobe::precheck
