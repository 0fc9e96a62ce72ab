// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/recorded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "dump/recorded_call.hpp"
#include "formats/stored_tensor.hpp"
#include "precheck/calls/not_rebuilt.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

using dump::ArgumentKind;
using dump::Entry;
using dump::NodeKind;
using Node = Entry::Index;

constexpr std::uint64_t kMaxRecorded = std::uint64_t{16} << 30;
constexpr int kMaxOutputNesting = 16;

/// `relu_`, `__iadd__`, `relu(x, inplace=True)`; functions have that argument last.
bool is_in_place(const ApiName& api, const Entry& forward) {
  const std::string_view name = api.name;
  if (name.starts_with("__i") || (name.ends_with('_') && !name.ends_with("__"))) return true;
  if (api.type != "Functional") return false;
  const auto [args, kwargs] =
      forward.find_all(0, std::array<Entry::MemberKey, 2>{"input_args", "input_kwargs"});
  Node last = Entry::kNone;
  if (forward.is(args, NodeKind::array)) forward.children(args, [&](Node child) { last = child; });
  return forward.flag(forward.find(kwargs, "inplace"), "value") || forward.flag(last, "value");
}

/// NumPy files have elements of bfloat16 as float32, which holds them exactly: the upper half of the bits.
void narrow_to_bfloat16(std::vector<std::byte>& elements) {
  for (std::size_t at = 0; 2 * at < elements.size(); at += 2)
    std::copy_n(elements.begin() + static_cast<std::ptrdiff_t>(2 * at + 2), 2,
                elements.begin() + static_cast<std::ptrdiff_t>(at));
  elements.resize(elements.size() / 2);
}

class RecordedReader {
 public:
  RecordedReader(const Entry& entry, const TensorStore* tensors, RecordedOutputs& outputs)
      : entry_(entry), tensors_(tensors), outputs_(outputs) {}

  CallOutput output(Node node, int depth) {
    CallOutput result;
    if (depth > kMaxOutputNesting) throw NotRebuilt("its outputs are nested too deeply");
    const dump::Argument argument = dump::read_argument(entry_, node);
    switch (argument.kind) {
      case ArgumentKind::none:
        break;
      case ArgumentKind::plain:
        throw NotRebuilt("an output was not recorded");
      case ArgumentKind::list:
      case ArgumentKind::mapping:  // a tuple with names
        result.value = list(node, depth);
        break;
      case ArgumentKind::tensor:
        result.value = tensor(node);
        break;
      case ArgumentKind::typed:
        result.value = typed(argument);
    }
    return result;
  }

 private:
  CallOutput::List list(Node node, int depth) {
    CallOutput::List list;
    entry_.children(node, [&](Node child) { list.elements.push_back(output(child, depth + 1)); });
    return list;
  }

  decltype(CallOutput::value) typed(const dump::Argument& argument) {
    const auto& [kind, type, node] = argument;
    if (node == Entry::kNone) return OtherOutput{std::string(type)};
    ScalarOutput result;
    switch (entry_.kind(node)) {
      case NodeKind::boolean:
        result.kind = ScalarOutput::ScalarKind::boolean;
        break;
      case NodeKind::integer:
        if (type == "float") result.kind = ScalarOutput::ScalarKind::real;
        break;
      case NodeKind::real:
        result.kind = ScalarOutput::ScalarKind::real;
        break;
      case NodeKind::string:
        result.kind = ScalarOutput::ScalarKind::text;
        result.repr = python_repr(entry_.text(node));
        return result;
      default:
        return OtherOutput{std::string(type)};
    }
    result.repr = entry_.python_str(node);
    if (result.kind == ScalarOutput::ScalarKind::real) result.real = entry_.number(node);
    return result;
  }

  TensorOutput tensor(Node node) {
    const dump::TensorRecord record = dump::read_tensor(entry_, node);
    const std::string_view file = record.file;
    if (file.empty() || tensors_ == nullptr) throw NotRebuilt("its outputs were not dumped as tensors");
    const formats::StoredTensor stored = tensors_->open(std::string(file));
    const std::uint64_t width = tensor::info(stored.dtype).size;
    const auto count = static_cast<std::uint64_t>(stored.numel());
    if (count > kMaxRecorded / width || count * width > kMaxRecorded - taken_)
      throw NotRebuilt(fmt::format("its outputs are larger than {}", human_bytes(kMaxRecorded)));
    taken_ += count * width;
    TensorOutput result;
    result.dtype = stored.dtype;
    result.shape.assign(stored.shape.begin(), stored.shape.end());
    std::vector<std::byte>& bytes = outputs_.bytes.emplace_back(count * width);
    formats::ElementReader(stored).read(bytes);
    if (stored.dtype == tensor::DType::float32 &&
        tensor::dtype_from_name(record.dtype) == tensor::DType::bfloat16) {
      narrow_to_bfloat16(bytes);
      result.dtype = tensor::DType::bfloat16;
    }
    result.bytes = bytes;
    return result;
  }

  const Entry& entry_;
  const TensorStore* tensors_;
  RecordedOutputs& outputs_;
  std::uint64_t taken_ = 0;
};

}  // namespace

bool has_files(const Entry& entry) {
  const std::vector<Node> tensors = dump::tensors_in(entry, entry.find(0, "output"));
  return tensors.empty() || std::ranges::any_of(tensors, [&](Node tensor) {
           return !dump::read_tensor(entry, tensor).file.empty();
         });
}

RecordedOutputs recorded_outputs(const Entry& entry, const TensorStore* tensors, std::string_view member) {
  RecordedOutputs outputs;
  const Node node = entry.find(0, member);
  if (node == Entry::kNone || entry.is(node, NodeKind::null))
    throw NotRebuilt("its outputs were not recorded");
  RecordedReader reader(entry, tensors, outputs);
  if (entry.is(node, NodeKind::array)) {
    entry.children(node, [&](Node child) { outputs.elements.push_back(reader.output(child, 0)); });
  } else {
    outputs.elements.push_back(reader.output(node, 0));
  }
  return outputs;
}

bool passes_gradient_through(const ApiName& api, const Entry& forward, const Entry& backward,
                             const TensorStore* tensors) {
  if (!is_in_place(api, forward)) return false;
  try {
    const RecordedOutputs came = recorded_outputs(backward, tensors, "input");
    const RecordedOutputs left = recorded_outputs(backward, tensors);
    if (came.elements.size() != 1 || left.elements.size() != 1) return false;
    const auto* in = std::get_if<TensorOutput>(&came.elements.front().value);
    const auto* out = std::get_if<TensorOutput>(&left.elements.front().value);
    return in != nullptr && out != nullptr && in->dtype == out->dtype && in->shape == out->shape &&
           std::ranges::equal(in->bytes, out->bytes);
  } catch (const NotRebuilt&) {
    return false;
  }
}

CallOutput shaped_like(const CallOutput& reference, std::vector<CallOutput> elements) {
  const auto* list = std::get_if<CallOutput::List>(&reference.value);
  if (list == nullptr) {
    if (elements.size() != 1) throw NotRebuilt("several outputs were recorded, but the operation gives one");
    return std::move(elements.front());
  }
  // A single recorded value that is a list itself.
  if (elements.size() == 1 && list->elements.size() != 1) {
    if (auto* inner = std::get_if<CallOutput::List>(&elements.front().value)) {
      std::vector<CallOutput> unpacked = std::move(inner->elements);
      elements = std::move(unpacked);
    }
  }
  CallOutput result;
  CallOutput::List recorded;
  recorded.tuple = list->tuple;
  recorded.elements = std::move(elements);
  for (std::size_t i = 0; i < recorded.elements.size() && i < list->elements.size(); ++i) {
    // Recorders do not write whether a list is a tuple.
    const auto* theirs = std::get_if<CallOutput::List>(&list->elements[i].value);
    auto* ours = std::get_if<CallOutput::List>(&recorded.elements[i].value);
    if (theirs != nullptr && ours != nullptr) ours->tuple = theirs->tuple;
  }
  result.value = std::move(recorded);
  return result;
}

GradientPairs pair_gradients(const CallOutput& reference, std::vector<CallOutput> recorded) {
  const auto is_there = [](const CallOutput& output) {
    return !std::holds_alternative<std::monostate>(output.value);
  };
  const auto* list = std::get_if<CallOutput::List>(&reference.value);
  if (list == nullptr) throw NotRebuilt("the runner did not return a list of gradients");
  CallOutput::List made = *list;
  std::vector<std::size_t> there;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    if (is_there(recorded[i])) there.push_back(i);
  }
  const bool by_place = made.elements.size() == recorded.size();
  if (!by_place) {
    std::erase_if(made.elements, [&](const CallOutput& output) { return !is_there(output); });
    std::erase_if(recorded, [&](const CallOutput& output) { return !is_there(output); });
    if (made.elements.size() != recorded.size())
      throw NotRebuilt(fmt::format("{} gradients were recorded, but {} are computed", recorded.size(),
                                   made.elements.size()));
  }
  CallOutput::List ours;
  CallOutput::List theirs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    if (!is_there(made.elements[i]) || !is_there(recorded[i])) continue;
    theirs.elements.push_back(std::move(made.elements[i]));
    ours.elements.push_back(std::move(recorded[i]));
    places.push_back(by_place ? i : there[i]);
  }
  if (ours.elements.empty()) throw NotRebuilt("no gradient was recorded");
  return {{std::move(theirs)}, {std::move(ours)}, std::move(places)};
}

}  // namespace msprobe::precheck
