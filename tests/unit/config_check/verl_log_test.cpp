// SPDX-License-Identifier: Apache-2.0
#include "config_check/verl_log.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "support/error.hpp"

namespace msprobe::config_check::verl_log_test {
namespace {

std::string found(const std::string& log) {
  return pack::python_repr(read_verl_log(*memory_source(log, "t.log")).value);
}

std::string refused(const std::string& log) {
  try {
    return found(log);
  } catch (const FormatError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a configuration is found behind any prefix, or none") {
  CHECK(found("{'actor_rollout_ref': {'a': 1},\n 'b': 2}\n") == "{'actor_rollout_ref': {'a': 1}, 'b': 2}");
  CHECK(found("x\n\x1b[36m(T pid=1)\x1b[0m {'actor_rollout_ref': {'a': 1},\nnoise\n\x1b[36m(T pid=1)\x1b[0m  "
              "'b': 2}\n") == "{'actor_rollout_ref': {'a': 1}, 'b': 2}");
  CHECK(found("(T) {'actor_rollout_ref': {'a': 1},\nother text(T)  'b': 2,(T)  'c': 3}\r\n") ==
        "{'actor_rollout_ref': {'a': 1}, 'b': 2, 'c': 3}");
  CHECK(found("[10:00:01] {'actor_rollout_ref': {'a': 1},\n[10:00:02]  'b': 2}\n") ==
        "{'actor_rollout_ref': {'a': 1}, 'b': 2}");
}

TEST_CASE("JSON, on one line or pretty-printed") {
  CHECK(found("INFO {\"actor_rollout_ref\": {\"a\": null}}\n") == "{'actor_rollout_ref': {'a': None}}");
  CHECK(found("P {\nP   \"actor_rollout_ref\": {\nP     \"a\": [\nP       1\nP     ]\nP   },\nP   \"b\": "
              "2\nP }\n") == "{'actor_rollout_ref': {'a': [1]}, 'b': 2}");
  CHECK(found("{\n  \"actor_rollout_ref\" : {}\n}") == "{'actor_rollout_ref': {}}");
}

TEST_CASE("the last configuration counts") {
  const VerlConfig config =
      read_verl_log(*memory_source("{'actor_rollout_ref': 1}\n{'actor_rollout_ref': 2}\n", "t.log"));
  CHECK(pack::python_repr(config.value) == "{'actor_rollout_ref': 2}");
  REQUIRE(config.warnings.size() == 1);
  CHECK(config.warnings[0] == "t.log: the log has 2 configurations; the last one is used");
}

TEST_CASE("logs without one, and with the beginning of one") {
  const std::string none = "t.log: Not found the start with 'actor_rollout_ref' dict in log.";
  CHECK(refused("") == none);
  CHECK(refused("actor_rollout_ref") == none);
  CHECK(refused("'actor_rollout_ref': 1") == none);
  CHECK(refused("{'actor_rollout_ref'") == none);
  CHECK(refused("{'actor_rollout_ref\": 1") == none);
  CHECK(refused("{'actor_rollout_ref': {'a': [1,\n") ==
        "t.log: Unclosed dictionary, mismatched brackets of 3");
}

TEST_CASE("a log that is longer than what is kept of it") {
  std::string log(9'000'000, '.');
  for (std::size_t i = 100; i < log.size(); i += 101) log[i] = '\n';
  const std::string config = "(T) {'actor_rollout_ref': {'a': 1},\nxxx\n(T)  'b': 2}\n";
  // Also across the borders of the blocks that are read.
  for (const std::size_t at : {std::size_t{0}, (std::size_t{4} << 20) - 20, (std::size_t{8} << 20) - 5}) {
    std::string with = log;
    with[at == 0 ? 0 : at - 1] = '\n';
    with.replace(at == 0 ? 1 : at, config.size(), config);
    const VerlConfig read = read_verl_log(*memory_source(with, "t.log"));
    CHECK(pack::python_repr(read.value) == "{'actor_rollout_ref': {'a': 1}, 'b': 2}");
    CHECK(read.warnings.empty());
  }
  const VerlConfig twice =
      read_verl_log(*memory_source("{'actor_rollout_ref': 1}\n" + log + "\n" + config, "t.log"));
  CHECK(pack::python_repr(twice.value) == "{'actor_rollout_ref': {'a': 1}, 'b': 2}");
  CHECK(twice.warnings.size() == 1);
}

TEST_CASE("paths") {
  const pack::FlatMap flat = flatten_verl(
      read_verl_log(*memory_source("{'actor_rollout_ref': {'x': {}, 'y': [{'z': 1}], 'w': {'v': 1}}}", "t"))
          .value,
      "t");
  REQUIRE(flat.size() == 3);
  CHECK(flat.items()[0].first == "actor_rollout_ref/x");
  CHECK(pack::python_repr(flat.items()[1].second) == "[{'z': 1}]");
  CHECK(flat.items()[2].first == "actor_rollout_ref/w/v");
  for (const char* path : {"profiler/x", "global_profiler/tool", "a/profiler/b", "ray_init",
                           "ray_kwargs/ray_init/n", "a/ray_x"}) {
    CAPTURE(path);
    CHECK(is_runtime_path(path));
  }
  for (const char* path : {"profiler", "a/array_len", "trainer/profiler_steps/x", "x_ray_y", ""}) {
    CAPTURE(path);
    CHECK_FALSE(is_runtime_path(path));
  }
}

TEST_CASE("values are equal as in Python, but a Boolean is no number") {
  using pack::PackValue;
  CHECK(equal_verl(PackValue::of(1.0), PackValue::of(std::int64_t{1})));
  CHECK_FALSE(equal_verl(PackValue::of(true), PackValue::of(std::int64_t{1})));
  CHECK_FALSE(equal_verl(PackValue::of_text("1"), PackValue::of(std::int64_t{1})));
  CHECK_FALSE(
      equal_verl(PackValue::of_integer("9007199254740993"), PackValue::of_integer("9007199254740992")));
  CHECK(equal_verl(PackValue(), PackValue()));
  CHECK(equal_verl(PackValue::of(std::nan("")), PackValue::of(std::nan(""))));
  CHECK_FALSE(equal_verl(PackValue::of(std::nan("")), PackValue::of_text("nan")));
  CHECK_FALSE(equal_verl(PackValue::list(), PackValue::map()));
}

}  // namespace msprobe::config_check::verl_log_test
