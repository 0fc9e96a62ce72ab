// SPDX-License-Identifier: Apache-2.0
// Answers of acc_check's runner to a request (data/precheck/PROTOCOL.md), one fact or more of which is wrong,
// up to the judgement of what they say. The choices are the type of the tensors, what the outputs are, how
// many there are, and whether there is a backward.
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz_facts.hpp"
#include "fuzz_target.hpp"
#include "precheck/acc_check/narrow.hpp"
#include "precheck/acc_check/recorded.hpp"
#include "precheck/calls/not_rebuilt.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/runner/answer.hpp"
#include "precheck/runner/process.hpp"
#include "precheck/runner/shared_file.hpp"
#include "precheck/standards/standards.hpp"
#include "support/json_writer.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::size_t kAnswerChoices = 5;
constexpr std::size_t kAnswerFacts = 128;

class AnswerText {
 public:
  AnswerText(Facts& facts, SharedFile& file) : facts_(facts), file_(file) {
    constexpr std::array<const char*, 12> kTypes = {"float32",       "float16", "bfloat16",  "float64",
                                                    "int32",         "int64",   "uint8",     "bool",
                                                    "float8_e4m3fn", "int8",    "complex64", "int16"};
    type_ = kTypes[facts.choose(kTypes.size())];
    kind_ = facts.choose(4);
    outputs_ = facts.choose(3);
    backward_ = facts.choose(2) == 1;
    pattern_ = facts.choose(4);
  }

  std::string hello() {
    JsonWriter json;
    json.open_object();
    json.key(facts_.text("hello"));
    json.raw(facts_.json("1"));
    json.member(facts_.text("torch"), facts_.text("2.1.0"));
    json.member(facts_.text("device"), facts_.text("cpu"));
    json.close();
    return facts_.content(json.take());
  }

  std::string answer() {
    JsonWriter json;
    json.open_object();
    json.key(facts_.text("id"));
    json.raw(facts_.json(std::to_string(facts_.number(1))));
    json.key(facts_.text("forward"));
    json.raw(facts_.json(sides(false)));
    if (backward_) {
      json.key(facts_.text("backward"));
      json.raw(facts_.json(sides(true)));
    }
    if (!facts_.flag(true)) {
      json.open_object("error");
      json.member(facts_.text("stage"), facts_.text("device"));
      json.member(facts_.text("kind"), facts_.text("RuntimeError"));
      json.member(facts_.text("text"), facts_.text("out of memory\nmore"));
      json.key("ours");
      json.raw(facts_.json("false"));
      json.close();
    }
    json.key(facts_.text("leave"));
    json.raw(facts_.json("false"));
    json.close();
    return facts_.content(json.take());
  }

 private:
  std::string sides(bool backward) {
    JsonWriter json;
    json.open_object();
    json.key(facts_.text("reference"));
    json.raw(facts_.json(output()));
    json.key(facts_.text("device"));
    json.raw(facts_.json(output()));
    if (backward) {
      json.key(facts_.text("last"));
      json.raw(facts_.json(output()));
    }
    json.close();
    return json.take();
  }

  std::string output() {
    if (kind_ == 0) return tensor();
    const std::size_t count = facts_.count(outputs_);
    JsonWriter json;
    json.open_object();
    json.open_list(facts_.text(kind_ == 1 ? "list" : "tuple"));
    for (std::size_t i = 0; i < count; ++i) {
      json.element();
      json.raw(facts_.json(kind_ == 3 && i == 1 ? R"({"real": "1.5"})" : tensor()));
    }
    json.close();
    json.close();
    return json.take();
  }

  std::string tensor() {
    const tensor::DType type = *tensor::dtype_from_torch(type_);
    constexpr std::array<std::size_t, 2> kShape = {2, 3};
    std::vector<std::byte> bytes(kShape[0] * kShape[1] * tensor::info(type).size);
    constexpr std::array<unsigned char, 4> kPatterns = {0x3f, 0x00, 0x7f, 0xff};
    for (std::byte& byte : bytes) byte = std::byte(type_ == std::string("bool") ? 1 : kPatterns[pattern_]);
    if (!facts_.flag(true)) bytes[bytes.size() - 1] ^= std::byte{0x80};
    const std::uint64_t offset = file_.begin_tensor();
    file_.append(bytes);
    JsonWriter json;
    json.open_object();
    json.open_list(facts_.text("tensor"));
    json.value(facts_.text(type_));
    json.element();
    json.open_list();
    for (const std::size_t length : kShape) {
      json.element();
      json.raw(facts_.json(std::to_string(facts_.number(static_cast<std::int64_t>(length)))));
    }
    json.close();
    json.element();
    json.raw(facts_.json(std::to_string(facts_.number(static_cast<std::int64_t>(offset)))));
    json.close();
    json.close();
    return json.take();
  }

  Facts& facts_;
  SharedFile& file_;
  const char* type_;
  std::size_t kind_;
  std::size_t outputs_;
  bool backward_;
  std::size_t pattern_;
};

void check_judged(const SideOutputs& sides, CallDirection direction, bool right) {
  static const Standards standards = Standards::built_in();
  for (const Selection selection : {Selection::release_8, Selection::release_26}) {
    const CallJudgement judgement =
        judge({"Torch", "exp", "0"}, direction, sides.reference, sides.device, standards, selection);
    if (right && judgement.verdict > PrecheckVerdict::skip)
      throw std::logic_error("equal outputs are not right");
  }
}

void judge_backward(SideOutputs sides, bool right) {
  std::vector<std::vector<std::byte>> narrowed;
  narrow_gradients(sides.device, tensor::DType::bfloat16, narrowed);
  check_judged(sides, CallDirection::backward, right && narrowed.empty());
  try {
    GradientPairs pairs = pair_gradients(sides.reference, {sides.device});
    judge({"Torch", "exp", "0"}, CallDirection::backward, pairs.reference, pairs.recorded,
          Standards::built_in(), Selection::release_26);
  } catch (const NotRebuilt&) {
  }
}

}  // namespace

FUZZ_TARGET(runner_answer)(const std::uint8_t* data, std::size_t size) {
  static SharedFile file;
  file.clear();
  Facts facts(data, size, kAnswerChoices, kAnswerFacts);
  AnswerText text(facts, file);
  const std::string line = text.answer();
  try {
    read_hello(text.hello());
  } catch (const RunnerLost&) {
    if (facts.all_right()) throw;
  }
  try {
    const CallAnswer answer = read_answer(line, 1, file);
    const bool right = facts.all_right();
    if (!answer.forward && !answer.error) throw std::logic_error("an answer without anything");
    if (answer.forward) check_judged(*answer.forward, CallDirection::forward, right);
    if (answer.backward) judge_backward(*answer.backward, right);
  } catch (const RunnerLost&) {
    if (facts.all_right()) throw;
  }
}

}  // namespace msprobe::precheck
