// SPDX-License-Identifier: Apache-2.0
#include "inspect/onnx_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "formats/message_fields.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

using formats::MessageFields;

constexpr int kMostOnnxDepth = 40;

enum class OnnxMessage : std::uint8_t {
  model,
  graph,
  node,
  attribute,
  tensor,
  sparse,
  function,
  operators,
  entry,
  value,
  type,
  other
};

struct OnnxField {
  OnnxMessage in;
  std::uint64_t number;
  std::optional<OnnxMessage> message;  // the message in the field; nothing: a number or bytes
};

constexpr std::array kOnnxMessages = {
    OnnxField{OnnxMessage::model, 7, OnnxMessage::graph},
    OnnxField{OnnxMessage::model, 8, OnnxMessage::operators},
    OnnxField{OnnxMessage::model, 14, OnnxMessage::entry},
    OnnxField{OnnxMessage::model, 25, OnnxMessage::function},
    OnnxField{OnnxMessage::graph, 1, OnnxMessage::node},
    OnnxField{OnnxMessage::graph, 5, OnnxMessage::tensor},
    OnnxField{OnnxMessage::graph, 11, OnnxMessage::value},
    OnnxField{OnnxMessage::graph, 12, OnnxMessage::value},
    OnnxField{OnnxMessage::graph, 13, OnnxMessage::value},
    OnnxField{OnnxMessage::graph, 14, OnnxMessage::other},
    OnnxField{OnnxMessage::graph, 15, OnnxMessage::sparse},
    OnnxField{OnnxMessage::graph, 16, OnnxMessage::entry},
    OnnxField{OnnxMessage::node, 5, OnnxMessage::attribute},
    OnnxField{OnnxMessage::node, 9, OnnxMessage::entry},
    OnnxField{OnnxMessage::attribute, 5, OnnxMessage::tensor},
    OnnxField{OnnxMessage::attribute, 6, OnnxMessage::graph},
    OnnxField{OnnxMessage::attribute, 10, OnnxMessage::tensor},
    OnnxField{OnnxMessage::attribute, 11, OnnxMessage::graph},
    OnnxField{OnnxMessage::attribute, 14, OnnxMessage::other},
    OnnxField{OnnxMessage::attribute, 15, OnnxMessage::other},
    OnnxField{OnnxMessage::attribute, 22, OnnxMessage::sparse},
    OnnxField{OnnxMessage::attribute, 23, OnnxMessage::sparse},
    OnnxField{OnnxMessage::tensor, 13, OnnxMessage::entry},
    OnnxField{OnnxMessage::tensor, 16, OnnxMessage::entry},
    OnnxField{OnnxMessage::sparse, 1, OnnxMessage::tensor},
    OnnxField{OnnxMessage::sparse, 2, OnnxMessage::tensor},
    OnnxField{OnnxMessage::function, 7, OnnxMessage::node},
    OnnxField{OnnxMessage::function, 9, OnnxMessage::operators},
    OnnxField{OnnxMessage::function, 11, OnnxMessage::attribute},
    OnnxField{OnnxMessage::function, 12, OnnxMessage::value},
    OnnxField{OnnxMessage::function, 14, OnnxMessage::entry},
    OnnxField{OnnxMessage::value, 2, OnnxMessage::other},
    OnnxField{OnnxMessage::value, 4, OnnxMessage::entry},
};

/// The fields of each message that hold numbers and bytes, as bits.
constexpr std::uint64_t plain_fields(OnnxMessage message) {
  const auto bits = [](std::initializer_list<int> numbers) {
    std::uint64_t all = 0;
    for (const int number : numbers) all |= std::uint64_t{1} << number;
    return all;
  };
  switch (message) {
    case OnnxMessage::model:
      return bits({1, 2, 3, 4, 5, 6});
    case OnnxMessage::graph:
      return bits({2, 10});
    case OnnxMessage::node:
      return bits({1, 2, 3, 4, 6, 7, 8});
    case OnnxMessage::attribute:
      return bits({1, 2, 3, 4, 7, 8, 9, 13, 20, 21});
    case OnnxMessage::tensor:
      return bits({1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14});
    case OnnxMessage::sparse:
      return bits({3});
    case OnnxMessage::function:
      return bits({1, 4, 5, 6, 8, 10, 13});
    case OnnxMessage::operators:
    case OnnxMessage::entry:
      return bits({1, 2});
    case OnnxMessage::value:
      return bits({1, 3});
    default:
      return 0;
  }
}

constexpr std::array<std::string_view, 8> kDomains = {"",
                                                      "ai.onnx",
                                                      "ai.onnx.ml",
                                                      "ai.onnx.preview.training",
                                                      "com.microsoft",
                                                      "com.microsoft.nchwc",
                                                      "com.microsoft.experimental",
                                                      "com.ms.internal.nhwc"};

class OnnxGraph {
 public:
  explicit OnnxGraph(const ByteSource& file) : file_(file) {}

  std::string run() {
    follow(OnnxMessage::model, 0, file_.size(), 0);
    for (const std::string& domain : used_) {
      if (reason_.empty() && std::ranges::find(kDomains, domain) == kDomains.end() && !own_.contains(domain))
        reason_ = fmt::format("operators of another program ({})", display(domain));
    }
    return reason_;
  }

 private:
  std::string text(const MessageFields::MessageField& field) const {
    constexpr std::uint64_t kLongest = 4096;
    return read_text(file_, field.offset, std::min(field.length, kLongest));
  }

  static bool is_plain(std::string_view text) {
    return is_utf8(text) && std::ranges::none_of(text, [](char c) {
             return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
           });
  }

  void note(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }

  void follow(OnnxMessage message, std::uint64_t begin, std::uint64_t length, int depth) {
    if (depth == kMostOnnxDepth) return note("graphs that are nested too deeply");
    MessageFields fields(file_, begin, begin + length, "ONNX model");
    MessageFields::MessageField field;
    std::string key;
    std::string value;
    while (fields.next(field)) {
      check_interrupt();
      if (message == OnnxMessage::other) continue;  // types: any numbers and names are allowed
      const auto* inner = std::ranges::find_if(kOnnxMessages, [&](const OnnxField& each) {
        return each.in == message && each.number == field.number;
      });
      if (inner != kOnnxMessages.end() && field.wire == 2) {
        follow(*inner->message, field.offset, field.length, depth + 1);
        continue;
      }
      if (field.number >= 64 || (plain_fields(message) >> field.number & 1) == 0)
        return note(fmt::format("a field that ONNX does not have ({})", field.number));
      if (field.wire != 2) continue;
      if (message == OnnxMessage::node && field.number == 7) used_.insert(text(field));
      if (message == OnnxMessage::function && field.number == 10) own_.insert(text(field));
      if (message == OnnxMessage::node && field.number == 4) judge_operator(text(field));
      // Other protobuf formats have messages where ONNX has texts.
      const bool is_text =
          message == OnnxMessage::model || (message == OnnxMessage::node && field.number <= 4);
      if (is_text && !is_plain(text(field))) return note("a text field that is not text");
      if (message == OnnxMessage::entry && field.number == 1) key = text(field);
      if (message == OnnxMessage::entry && field.number == 2) value = text(field);
    }
    if (key == "location") judge_location(value);
  }

  void judge_operator(const std::string& name) {
    if (name.find("Python") != std::string::npos || name.starts_with("PyOp") || name.starts_with("PyCustom"))
      note(fmt::format("an operator that runs Python ({})", display(name)));
  }

  void judge_location(const std::string& path) {
    if (path.starts_with('/') || path.find("..") != std::string::npos || path.find('\\') != std::string::npos)
      note(fmt::format("elements in a file elsewhere ({})", display(path)));
  }

  const ByteSource& file_;
  std::set<std::string> used_;  // domains of the operators in use
  std::set<std::string> own_;   // domains of the model's own functions
  std::string reason_;
};

}  // namespace

std::string onnx_surplus(const ByteSource& file) {
  try {
    return OnnxGraph(file).run();
  } catch (const FormatError&) {
    return "a message that is broken";
  }
}

}  // namespace msprobe::inspect
