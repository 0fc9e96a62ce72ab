// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/call.hpp"

#include <limits>

#include "dump/names.hpp"
#include "dump/recorded_call.hpp"
#include "formats/tensor_file.hpp"
#include "support/byte_source.hpp"

namespace msprobe::diagnosis::replay {
namespace {

using dump::ArgumentKind;
using dump::Entry;
using dump::NodeKind;
using Node = Entry::Index;

// No operation that replay knows has arguments nested deeper than this, or more of them.
constexpr int kMaxNesting = 4;
constexpr std::size_t kMaxArguments = 256;

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
    const Node arguments = entry_.find(0, "input_args");
    if (entry_.is(arguments, NodeKind::array)) {
      call_.has_inputs = true;
      entry_.children(arguments, [&](Node child) {
        if (call_.positional.size() < kMaxArguments) call_.positional.push_back(value(child, 0));
      });
    }
    named("input_kwargs", call_.keywords);
    call_.has_parameters = named("parameters", call_.parameters);
    if (const Node output = entry_.find(0, "output"); output != Entry::kNone) outputs(output, "output", 0);
  }

 private:
  bool named(std::string_view section, std::vector<NamedValue>& into) {
    const Node node = entry_.find(0, section);
    if (!entry_.is(node, NodeKind::object)) return false;
    entry_.children(node, [&](Node child) {
      if (into.size() < kMaxArguments) into.push_back({std::string(entry_.key(child)), value(child, 0)});
    });
    return true;
  }

  Tensor tensor(Node node) {
    const dump::TensorRecord record = dump::read_tensor(entry_, node);
    Tensor result;
    const bool is_mindspore = record.type == "mindspore.Tensor";
    if (is_mindspore) call_.is_mindspore = true;
    const auto dtype = dtype_of(record.dtype);
    result.dtype = dtype.value_or(tensor::DType::float32);
    result.plain = (is_mindspore || record.type == "torch.Tensor") && dtype && record.shape;
    if (result.plain) result.shape = *record.shape;
    if (!record.file.empty() && !directory_.empty()) {
      result.open = [directory = directory_, file = std::string(record.file)] {
        return formats::open_tensor(open_file_beneath(directory, file));
      };
    }
    return result;
  }

  Value typed(std::string_view type, Node content) {
    Value result;
    result.kind = Value::ValueForm::other;
    if (content == Entry::kNone) return result;
    if (type == "torch.dtype" || type == "mindspore.dtype") {
      const auto dtype = dtype_of(entry_.string(content));
      if (!dtype) return result;
      result.kind = Value::ValueForm::dtype;
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
        into.kind = Value::ValueForm::none;
        break;
      case NodeKind::boolean:
        into.kind = Value::ValueForm::boolean;
        into.number = entry_.boolean(node) ? 1 : 0;
        break;
      case NodeKind::integer:
      case NodeKind::real:
        into.kind = entry_.is(node, NodeKind::integer) ? Value::ValueForm::integer : Value::ValueForm::real;
        into.number = entry_.number(node);
        break;
      case NodeKind::string:
        into.kind = Value::ValueForm::text;
        into.text = entry_.text(node);
        break;
      default:
        into.kind = Value::ValueForm::other;
    }
  }

  Value value(Node node, int depth) {
    const dump::Argument argument = dump::read_argument(entry_, node);
    Value result;
    switch (argument.kind) {
      case ArgumentKind::none:
        break;
      case ArgumentKind::plain:
        scalar(node, result);
        break;
      case ArgumentKind::list:
        result.kind = depth < kMaxNesting ? Value::ValueForm::list : Value::ValueForm::other;
        if (depth >= kMaxNesting) break;
        entry_.children(node, [&](Node child) {
          if (result.items.size() < kMaxArguments) result.items.push_back(value(child, depth + 1));
        });
        break;
      case ArgumentKind::mapping:
        result.kind = Value::ValueForm::other;
        break;
      case ArgumentKind::tensor:
        result.kind = Value::ValueForm::tensor;
        result.tensor = tensor(node);
        break;
      case ArgumentKind::typed:
        return typed(argument.type, argument.content);
    }
    return result;
  }

  void outputs(Node node, const std::string& place, int depth) {
    if (call_.outputs.size() >= kMaxArguments || depth > kMaxNesting) return;
    const ArgumentKind kind = dump::read_argument(entry_, node).kind;
    if (kind == ArgumentKind::tensor) call_.outputs.push_back({place, tensor(node)});
    if (kind != ArgumentKind::list && kind != ArgumentKind::mapping) return;
    std::size_t index = 0;
    entry_.children(node, [&](Node child) {
      const std::string_view key = entry_.key(child);
      const std::string part = kind == ArgumentKind::list ? std::to_string(index++) : std::string(key);
      outputs(child, place + "." + part, depth + 1);
    });
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
