// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/operation.hpp"

#include <algorithm>
#include <cmath>

#include "support/text.hpp"

namespace msprobe::diagnosis::replay {
namespace {

/// NumPy's and MindSpore's names of arguments, which their functions, and some of PyTorch's, take as well.
std::string_view usual_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kUsual[] = {
      {"axis", "dim"}, {"keep_dims", "keepdim"}, {"keepdims", "keepdim"}, {"self", "input"},
      {"x", "input"},  {"x1", "input"},          {"x2", "other"},         {"y", "other"},
  };
  const auto* const found =
      std::ranges::find(kUsual, name, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kUsual) ? name : found->second;
}

}  // namespace

Arguments::Arguments(const Call& call, const Operation& operation, std::string_view signature,
                     bool is_reflected, Workspace& workspace)
    : call_(call), operation_(operation), workspace_(workspace) {
  if (!call.has_inputs) throw NoStatement(Status::argument_not_recorded);
  std::size_t by_position = std::string_view::npos;
  bool is_open = false;
  for (const std::string_view word : split(signature, " ")) {
    if (word == "...") {
      is_open = true;
    } else if (word == "*") {
      // MindSpore's functions take by position what PyTorch's take by name.
      if (!call.is_mindspore) by_position = slots_.size();
    } else {
      slots_.push_back({.name = word.substr(0, word.find_first_of("=@"))});
    }
  }
  if (is_open && slots_.size() < call.positional.size()) slots_.resize(call.positional.size());
  if (call.positional.size() > std::min(by_position, slots_.size())) refuse_argument();
  for (std::size_t i = 0; i < call.positional.size(); ++i) slots_[i].value = &call.positional[i];
  for (const NamedValue& keyword : call.keywords) {
    // Where a result is put changes nothing about it.
    if (keyword.name == "out") continue;
    ArgumentSlot* found = slot(keyword.name);
    if (found == nullptr) found = slot(usual_name(keyword.name));
    if (found == nullptr && is_open) found = &slots_.emplace_back();
    if (found == nullptr || found->value != nullptr) refuse_argument();
    found->value = &keyword.value;
  }
  if (is_reflected && slots_.size() >= 2) std::swap(slots_[0].value, slots_[1].value);
}

/// In `dim|unbiased unbiased` the second one is called `unbiased`.
Arguments::ArgumentSlot* Arguments::slot(std::string_view name) {
  const auto exact = std::ranges::find(slots_, name, &ArgumentSlot::name);
  if (exact != slots_.end()) return &*exact;
  const auto either = std::ranges::find_if(slots_, [&](const ArgumentSlot& slot) {
    const std::vector<std::string_view> names = split(slot.name, "|");
    return std::ranges::find(names, name) != names.end();
  });
  return either == slots_.end() ? nullptr : &*either;
}

std::string_view Arguments::name(std::size_t position) const {
  if (position >= slots_.size()) refuse_argument();
  return slots_[position].name;
}

void Arguments::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) find(name);
}

void Arguments::ignore_all() {
  for (ArgumentSlot& slot : slots_) slot.used = true;
}

const Value* Arguments::find(std::string_view name) {
  ArgumentSlot* const found = slot(name);
  if (found == nullptr) return nullptr;
  found->used = true;
  return found->value == nullptr || found->value->kind == Value::ValueForm::none ? nullptr : found->value;
}

const Value& Arguments::need(std::string_view name) {
  const Value* const value = find(name);
  if (value == nullptr) throw NoStatement(Status::argument_not_recorded);
  return *value;
}

Array Arguments::unread_tensor(std::string_view name) {
  const Value& value = need(name);
  if (value.kind != Value::ValueForm::tensor) refuse_argument();
  return workspace_.describe(value.tensor);
}

Array Arguments::tensor(std::string_view name) {
  Array array = unread_tensor(name);
  workspace_.read(array);
  return array;
}

std::optional<Array> Arguments::tensor_if_given(std::string_view name) {
  if (!given(name)) return std::nullopt;
  return tensor(name);
}

Array Arguments::operand(std::string_view name) {
  const Value& value = need(name);
  if (value.kind == Value::ValueForm::tensor) return workspace_.load(value.tensor);
  if (!value.is_number()) refuse_argument();
  return workspace_.make({}, value.number);
}

bool Arguments::is_tensor(std::string_view name) {
  const Value* const value = find(name);
  return value != nullptr && value->kind == Value::ValueForm::tensor;
}

double Arguments::number(std::string_view name, double otherwise) {
  const Value* const value = find(name);
  if (value == nullptr) return otherwise;
  if (value->kind == Value::ValueForm::tensor && value->tensor.size() == 1) return tensor(name).values[0];
  if (!value->is_number()) refuse_argument();
  return value->number;
}

std::int64_t Arguments::integer(std::string_view name, std::int64_t otherwise) {
  const Value* const value = find(name);
  if (value == nullptr) return otherwise;
  if (value->kind != Value::ValueForm::integer || !(std::fabs(value->number) < 0x1p53)) refuse_argument();
  return static_cast<std::int64_t>(value->number);
}

bool Arguments::flag(std::string_view name, bool otherwise) {
  const Value* const value = find(name);
  if (value == nullptr) return otherwise;
  if (value->kind != Value::ValueForm::boolean && value->kind != Value::ValueForm::integer) refuse_argument();
  return value->number != 0;
}

std::string_view Arguments::text(std::string_view name, std::string_view otherwise) {
  const Value* const value = find(name);
  if (value == nullptr) return otherwise;
  if (value->kind != Value::ValueForm::text) refuse_argument();
  return value->text;
}

Shape Arguments::integers(std::string_view name, Shape otherwise) {
  const Value* const value = find(name);
  if (value == nullptr) return otherwise;
  if (value->kind == Value::ValueForm::integer) return {integer(name, 0)};
  if (value->kind != Value::ValueForm::list) refuse_argument();
  Shape result;
  for (const Value& item : value->items) {
    if (item.kind != Value::ValueForm::integer || !(std::fabs(item.number) < 0x1p53)) refuse_argument();
    result.push_back(static_cast<std::int64_t>(item.number));
  }
  return result;
}

std::optional<tensor::DType> Arguments::dtype(std::string_view name) {
  const Value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->kind != Value::ValueForm::dtype) refuse_argument();
  return value->dtype;
}

const Tensor* Arguments::find_parameter(std::string_view name) const {
  if (!call_.has_parameters) throw NoStatement(Status::argument_not_recorded);
  for (const NamedValue& parameter : call_.parameters) {
    if (parameter.name != name) continue;
    if (parameter.value.kind == Value::ValueForm::none) return nullptr;
    if (parameter.value.kind != Value::ValueForm::tensor) refuse_argument();
    return &parameter.value.tensor;
  }
  return nullptr;
}

std::optional<Array> Arguments::parameter(std::string_view name) {
  const Tensor* const found = find_parameter(name);
  if (found == nullptr) return std::nullopt;
  return workspace_.load(*found);
}

Array Arguments::need_unread_parameter(std::string_view name) {
  const Tensor* const found = find_parameter(name);
  if (found == nullptr) throw NoStatement(Status::argument_not_recorded);
  return workspace_.describe(*found);
}

Array Arguments::need_parameter(std::string_view name) {
  Array array = need_unread_parameter(name);
  workspace_.read(array);
  return array;
}

const Tensor& Arguments::output(std::size_t index) const {
  if (index >= call_.outputs.size()) throw NoStatement(Status::argument_not_recorded);
  return call_.outputs[index].tensor;
}

void Arguments::finish() const {
  for (const ArgumentSlot& slot : slots_) {
    const bool given = slot.value != nullptr && slot.value->kind != Value::ValueForm::none;
    if (given && !slot.used) refuse_argument();
  }
}

Results only(Array value, double sizes) {
  Results results(1);
  results[0].value = std::move(value);
  results[0].sizes = sizes;
  return results;
}

}  // namespace msprobe::diagnosis::replay
