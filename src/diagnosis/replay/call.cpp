// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/call.hpp"

#include <limits>

#include "dump/names.hpp"
#include "formats/tensor_file.hpp"
#include "support/byte_source.hpp"

namespace msprobe::diagnosis::replay {
namespace {

using dump::Entry;
using dump::NodeKind;
using Node = Entry::Index;

// No operation that is known here has arguments nested deeper, or more of them.
constexpr int kMaxNesting = 4;
constexpr std::size_t kMaxArguments = 256;

std::string_view text_member(const Entry& entry, Node node, std::string_view key) {
  const Node member = entry.find(node, key);
  return member != Entry::kNone && entry.is(member, NodeKind::string) ? entry.text(member)
                                                                      : std::string_view();
}

std::optional<tensor::DType> dtype_of(std::string_view name) {
  constexpr std::string_view kMindSpore = "mindspore.";
  if (name.starts_with(kMindSpore)) name.remove_prefix(kMindSpore.size());
  return tensor::dtype_from_name(name);
}

class CallReader {
 public:
  CallReader(const Entry& entry, const std::string& directory, Call& call)
      : entry_(entry), directory_(directory), call_(call) {}

  void read() {
    if (!entry_.is(0, NodeKind::object)) return;
    const Node arguments = entry_.find(0, "input_args");
    if (arguments != Entry::kNone && entry_.is(arguments, NodeKind::array)) {
      call_.has_inputs = true;
      entry_.children(arguments, [&](Node child) {
        if (call_.positional.size() < kMaxArguments) call_.positional.push_back(value(child, 0));
      });
    }
    named("input_kwargs", call_.keywords);
    call_.has_parameters = named("parameters", call_.parameters);
    const Node output = entry_.find(0, "output");
    if (output != Entry::kNone) outputs(output, "output", 0);
  }

 private:
  bool named(std::string_view section, std::vector<NamedValue>& into) {
    const Node node = entry_.find(0, section);
    if (node == Entry::kNone || !entry_.is(node, NodeKind::object)) return false;
    entry_.children(node, [&](Node child) {
      if (into.size() < kMaxArguments) into.push_back({std::string(entry_.key(child)), value(child, 0)});
    });
    return true;
  }

  bool is_tensor(Node node) const {
    const std::string_view type = text_member(entry_, node, "type");
    return !type.empty() && entry_.find(node, "shape") != Entry::kNone;
  }

  Tensor tensor(Node node) {
    Tensor result;
    const std::string_view type = text_member(entry_, node, "type");
    const bool is_mindspore = type == "mindspore.Tensor";
    if (is_mindspore) call_.is_mindspore = true;
    result.plain = is_mindspore || type == "torch.Tensor";
    if (const auto dtype = dtype_of(text_member(entry_, node, "dtype"))) {
      result.dtype = *dtype;
    } else {
      result.plain = false;
    }
    const Node shape = entry_.find(node, "shape");
    if (!entry_.is(shape, NodeKind::array)) result.plain = false;
    if (result.plain) {
      entry_.children(shape, [&](Node child) {
        const double length = entry_.is(child, NodeKind::integer) ? entry_.number(child) : -1;
        const bool possible = length >= 0 && length < 0x1p53;
        if (!possible) result.plain = false;
        result.shape.push_back(possible ? static_cast<std::int64_t>(length) : 0);
      });
    }
    const std::string_view file = text_member(entry_, node, "data_name");
    if (!file.empty() && !directory_.empty()) {
      result.open = [directory = directory_, file = std::string(file)] {
        return formats::open_tensor(open_file_beneath(directory, file));
      };
    }
    return result;
  }

  Value leaf(Node node) {
    Value result;
    if (is_tensor(node)) {
      result.kind = Value::Kind::tensor;
      result.tensor = tensor(node);
      return result;
    }
    result.kind = Value::Kind::other;
    const std::string_view type = text_member(entry_, node, "type");
    const Node content = entry_.find(node, "value");
    if (content == Entry::kNone) return result;
    if (type == "torch.dtype" || type == "mindspore.dtype") {
      const auto dtype = dtype_of(entry_.is(content, NodeKind::string) ? entry_.text(content) : "");
      if (!dtype) return result;
      result.kind = Value::Kind::dtype;
      result.dtype = *dtype;
    } else if (type == "torch.Size") {
      return value(content, 0);
    } else {
      scalar(content, result);
    }
    return result;
  }

  void scalar(Node node, Value& into) {
    switch (entry_.kind(node)) {
      case NodeKind::null:
        into.kind = Value::Kind::none;
        break;
      case NodeKind::boolean:
        into.kind = Value::Kind::boolean;
        into.number = entry_.boolean(node) ? 1 : 0;
        break;
      case NodeKind::integer:
      case NodeKind::real:
        into.kind = entry_.is(node, NodeKind::integer) ? Value::Kind::integer : Value::Kind::real;
        into.number = entry_.number(node);
        break;
      case NodeKind::string:
        into.kind = Value::Kind::text;
        into.text = entry_.text(node);
        break;
      default:
        into.kind = Value::Kind::other;
    }
  }

  Value value(Node node, int depth) {
    Value result;
    if (entry_.is(node, NodeKind::object)) {
      if (!text_member(entry_, node, "type").empty()) return leaf(node);
      result.kind = Value::Kind::other;
    } else if (entry_.is(node, NodeKind::array)) {
      result.kind = depth < kMaxNesting ? Value::Kind::list : Value::Kind::other;
      if (depth >= kMaxNesting) return result;
      entry_.children(node, [&](Node child) {
        if (result.items.size() < kMaxArguments) result.items.push_back(value(child, depth + 1));
      });
    } else {
      scalar(node, result);
    }
    return result;
  }

  void outputs(Node node, const std::string& place, int depth) {
    if (call_.outputs.size() >= kMaxArguments || depth > kMaxNesting) return;
    const bool is_object = entry_.is(node, NodeKind::object);
    if (is_object && !text_member(entry_, node, "type").empty()) {
      if (is_tensor(node)) call_.outputs.push_back({place, tensor(node)});
    } else if (is_object) {
      entry_.children(
          node, [&](Node child) { outputs(child, place + "." + std::string(entry_.key(child)), depth + 1); });
    } else if (entry_.is(node, NodeKind::array)) {
      std::size_t index = 0;
      entry_.children(node,
                      [&](Node child) { outputs(child, place + "." + std::to_string(index++), depth + 1); });
    }
  }

  const Entry& entry_;
  const std::string& directory_;
  Call& call_;
};

}  // namespace

std::uint64_t Tensor::size() const {
  std::uint64_t product = 1;
  for (const std::int64_t length : shape) {
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(length), &product)) {
      return std::numeric_limits<std::uint64_t>::max();
    }
  }
  return product;
}

std::optional<Call> read_call(std::string_view name, const dump::Entry& entry, const std::string& directory) {
  const std::optional<dump::EntryName> parts = dump::parse_entry_name(name);
  if (!parts || parts->direction != dump::Direction::forward) return std::nullopt;
  Call call;
  call.is_module = parts->is_module;
  call.operation = parts->operation();
  const std::string_view base = parts->base;
  call.prefix = call.is_module ? base.substr(0, base.find('.')) : dump::split_last(base).first;
  CallReader(entry, directory, call).read();
  return call;
}

}  // namespace msprobe::diagnosis::replay
