// SPDX-License-Identifier: Apache-2.0
#include "dump/recorded_call.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/dump/entry_text.hpp"

namespace msprobe::recorded_call_test {

using namespace msprobe::dump;

TEST_CASE("the kind of an argument follows from its type, or without one from its form") {
  const auto kind_of = [](const std::string& json) {
    const Entry entry = entry_of(json);
    return read_argument(entry, 0).kind;
  };
  CHECK(kind_of("null") == ArgumentKind::none);
  for (const char* const plain : {"1", "-2.5", "true", "\"mean\""})
    CHECK(kind_of(plain) == ArgumentKind::plain);
  CHECK(kind_of("[1, 2]") == ArgumentKind::list);
  CHECK(kind_of(R"({"a": 1, "value": 2})") == ArgumentKind::mapping);
  CHECK(kind_of(R"({"type": 3})") == ArgumentKind::mapping);
  CHECK(kind_of(R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": []})") ==
        ArgumentKind::tensor);
  CHECK(kind_of(R"({"type": "int", "value": 3})") == ArgumentKind::typed);
  const Entry size = entry_of(R"({"type": "torch.Size", "value": [2, 3]})");
  const Argument argument = read_argument(size, 0);
  CHECK(argument.type == "torch.Size");
  CHECK(size.python_str(argument.content) == "[2, 3]");
  const Entry unknown = entry_of(R"({"type": "torch.Generator"})");
  CHECK(read_argument(unknown, 0).content == Entry::kNone);
}

TEST_CASE("a tensor's record is read as far as it is one") {
  const Entry entry =
      entry_of(R"({"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [2, 0, 9223372036854775807],)"
               R"( "requires_grad": true, "data_name": "a.pt", "datapath": "b.pt"})");
  const TensorRecord record = read_tensor(entry, 0);
  CHECK(record.type == "torch.Tensor");
  CHECK(record.dtype == "torch.bfloat16");
  CHECK(record.shape == std::vector<std::int64_t>{2, 0, 9223372036854775807});
  CHECK(record.requires_grad);
  CHECK(record.file == "a.pt");
  for (const char* const shape : {"[-1]", "[2.0]", "[9223372036854775808]", "[null]", "3", "null"}) {
    CAPTURE(shape);
    const Entry wrong = entry_of(
        std::string(R"({"dtype": 1, "requires_grad": 1, "datapath": "b.pt", "shape": )") + shape + "}");
    const TensorRecord told = read_tensor(wrong, 0);
    CHECK_FALSE(told.shape);
    CHECK(told.dtype.empty());
    CHECK_FALSE(told.requires_grad);
    CHECK(told.file == "b.pt");
  }
}

TEST_CASE("tensors are found in lists and mappings, in their order") {
  const Entry entry = entry_of(
      R"([{"dtype": "a"}, {"x": [{"dtype": "b"}, 1, null], "y": {"dtype": "c", "z": {"dtype": "d"}}}])");
  std::string found;
  for (const Entry::Index tensor : tensors_in(entry, 0)) found += entry.string(tensor, "dtype");
  CHECK(found == "abc");
  CHECK(tensors_in(entry, Entry::kNone).empty());
}

TEST_CASE("members that are not there, or of another kind, are nothing") {
  const Entry entry = entry_of(R"({"text": "a", "yes": true, "no": false, "one": -1, "half": 0.5})");
  CHECK(entry.string(0, "text") == "a");
  CHECK(entry.string(0, "one").empty());
  CHECK(entry.string(Entry::kNone, "text").empty());
  CHECK(entry.flag(0, "yes"));
  for (const char* const name : {"no", "one", "none"}) CHECK_FALSE(entry.flag(0, name));
  CHECK(entry.integer(entry.find(0, "one")) == -1);
  CHECK_FALSE(entry.integer(entry.find(0, "half")));
  CHECK_FALSE(entry.integer(Entry::kNone));
  CHECK_FALSE(entry.is(Entry::kNone, NodeKind::null));
}

}  // namespace msprobe::recorded_call_test
