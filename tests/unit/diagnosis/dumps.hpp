// SPDX-License-Identifier: Apache-2.0
// Small dumps written in a test.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/side.hpp"
#include "support/byte_source.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis::testing {

/// A tensor whose values spread around 0; `size` scales all statistics, `more` follows them.
inline std::string tensor(double size, std::string_view shape = "[4, 64]",
                          std::string_view dtype = "torch.float32", std::string_view more = {}) {
  std::string text = R"({"type": "torch.Tensor", "dtype": ")" + std::string(dtype) + R"(", "shape": )";
  text += shape;
  text += ", \"Max\": " + python_repr(3 * size) + ", \"Min\": " + python_repr(-2.5 * size);
  text += ", \"Mean\": " + python_repr(0.01 * size) + ", \"Norm\": " + python_repr(16 * size);
  return text + std::string(more) + "}";
}

/// The same with a random error: only the largest element shows it, by that much of itself.
inline std::string rough(double size, double error, std::string_view shape = "[4, 64]",
                         std::string_view dtype = "torch.float32", std::string_view more = {}) {
  std::string text = tensor(size, shape, dtype, more);
  const std::string key = "\"Max\": ";
  const std::size_t at = text.find(key) + key.size();
  return text.replace(at, text.find(',', at) - at, python_repr(3 * size * (1 + error)));
}

inline std::string scalar(std::string_view type, std::string_view value) {
  return R"({"type": ")" + std::string(type) + R"(", "value": )" + std::string(value) + "}";
}

using Texts = std::vector<std::string>;

inline std::string list_of(const Texts& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

/// The members of `data`, in the order of their adding.
class DumpText {
 public:
  DumpText& forward(std::string_view name, const Texts& inputs, const Texts& outputs,
                    const Texts& keywords = {}, const Texts& parameters = {}) {
    std::string text =
        R"({"input_args": [)" + list_of(inputs) + R"(], "input_kwargs": {)" + list_of(keywords) + "}";
    text += R"(, "output": [)" + list_of(outputs) + "]";
    if (!parameters.empty()) text += R"(, "parameters": {)" + list_of(parameters) + "}";
    return add(name, text + "}");
  }
  DumpText& backward(std::string_view name, const Texts& inputs, const Texts& outputs) {
    return add(name, R"({"input": [)" + list_of(inputs) + R"(], "output": [)" + list_of(outputs) + "]}");
  }
  DumpText& gradients(std::string_view name, const Texts& members) {
    return add(name, "{" + list_of(members) + "}");
  }
  DumpText& append(const DumpText& other) {
    text_ += (text_.empty() || other.text_.empty() ? "" : ",\n") + other.text_;
    return *this;
  }
  DumpText& add(std::string_view name, const std::string& value) {
    text_ += (text_.empty() ? "" : ",\n") + ('"' + std::string(name) + "\": " + value);
    return *this;
  }
  dump::Side side(std::string_view task = "statistics", std::string_view level = "mix",
                  const dump::CommunicationNames* communication = nullptr,
                  std::string_view framework = "pytorch") const {
    const std::string text = R"({"task": ")" + std::string(task) + R"(", "level": ")" + std::string(level) +
                             R"(", "framework": ")" + std::string(framework) +
                             (recorder.empty() ? "" : R"(", "recorder": ")" + recorder) + R"(", )" + header +
                             R"("data": {)" + text_ + "}" +
                             (training.empty() ? "" : R"(, "training": )" + training) + "}";
    return dump::load_side(*memory_source(text, "dump.json"), communication);
  }

  std::string training;  // the member of that name; empty: none
  std::string recorder;  // likewise
  std::string header;    // more members, each with a comma after it

 private:
  std::string text_;
};

/// `"name": value`, a member of keyword arguments, parameters or gradients.
inline std::string named(std::string_view name, const std::string& value) {
  return '"' + std::string(name) + "\": " + value;
}

inline dump::ConstructTable construct_of(
    std::initializer_list<std::pair<std::string_view, std::string_view>> parents) {
  dump::ConstructTable table;
  for (const auto& [entry, parent] : parents) table.add(entry, parent);
  return table;
}

}  // namespace msprobe::diagnosis::testing
