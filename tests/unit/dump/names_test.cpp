// SPDX-License-Identifier: Apache-2.0
#include "dump/names.hpp"

#include <doctest/doctest.h>

namespace msprobe::dump_names_test {

using msprobe::dump::Direction;
using msprobe::dump::parse_entry_name;

TEST_CASE("entry names are read from the right") {
  const auto api = parse_entry_name("Functional.linear.3.forward");
  REQUIRE(api);
  CHECK(api->base == "Functional.linear");
  CHECK(api->direction == Direction::forward);
  CHECK(api->call == "3");
  CHECK(api->call_first);
  CHECK_FALSE(api->is_module);
  CHECK(api->operation() == "linear");

  const auto module = parse_entry_name("Module.layers.0.fc.Linear.backward.12");
  REQUIRE(module);
  CHECK(module->base == "Module.layers.0.fc.Linear");
  CHECK(module->direction == Direction::backward);
  CHECK(module->call == "12");
  CHECK_FALSE(module->call_first);
  CHECK(module->is_module);
  CHECK(module->operation() == "Linear");

  const auto custom = parse_entry_name("a.b.c.f.0.backward");
  REQUIRE(custom);
  CHECK(custom->base == "a.b.c.f");
}

TEST_CASE("both spellings of parameter gradients") {
  const auto old_name = parse_entry_name("Module.fc.Linear.parameters_grad");
  REQUIRE(old_name);
  CHECK(old_name->base == "Module.fc.Linear");
  CHECK(old_name->call.empty());
  const auto new_name = parse_entry_name("Module.fc.Linear.parameters_grad.1");
  REQUIRE(new_name);
  CHECK(new_name->base == "Module.fc.Linear");
  CHECK(new_name->call == "1");
  CHECK(new_name->direction == Direction::parameters_grad);
}

TEST_CASE("names without a direction are not names of entries") {
  CHECK_FALSE(parse_entry_name(""));
  CHECK_FALSE(parse_entry_name("x"));
  CHECK_FALSE(parse_entry_name("forward.a.b"));
  CHECK(parse_entry_name("forward"));
  CHECK(parse_entry_name("y.0.debug")->direction == Direction::debug);
}

}  // namespace msprobe::dump_names_test
