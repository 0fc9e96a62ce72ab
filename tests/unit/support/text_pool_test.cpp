// SPDX-License-Identifier: Apache-2.0
#include "support/text_pool.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace msprobe::support_text_pool_test {

using namespace msprobe;

TEST_CASE("a pool gives equal texts one number and never moves a text") {
  TextPool pool;
  CHECK(pool.at(0).empty());
  CHECK(pool.intern("") == 0);
  const std::uint32_t first = pool.intern("torch.float32");
  CHECK(pool.intern("torch.float32") == first);
  CHECK(pool.add("torch.float32") != first);
  const std::string_view kept = pool.at(first);
  const std::string large(3'000'000, 'x');
  const std::uint32_t big = pool.add(large);
  for (int i = 0; i < 100'000; ++i) pool.intern(std::to_string(i));
  CHECK(pool.at(first).data() == kept.data());
  CHECK(pool.at(first) == "torch.float32");
  CHECK(pool.at(big) == large);
  CHECK(pool.at(pool.intern("99999")) == "99999");
  const TextPool moved = std::move(pool);
  CHECK(moved.at(first) == "torch.float32");
}

TEST_CASE("a pool keeps texts of every length") {
  TextPool pool;
  std::vector<std::uint32_t> numbers;
  for (std::size_t size = 0; size < 20'000; size += 13) numbers.push_back(pool.add(std::string(size, 'a')));
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(pool.at(numbers[i]) == std::string(13 * i, 'a'));
}

TEST_CASE("a table numbers different texts in the order of their coming") {
  TextTable table;
  CHECK(table.find("b") == TextIndex::kNone);
  for (std::uint32_t i = 1; i < 5'000; ++i) CHECK(table.intern("text " + std::to_string(i)) == i);
  CHECK(table.intern("text 17") == 17);
  CHECK(table.find("text 4999") == 4999);
  CHECK(table.find("text 5000") == TextIndex::kNone);
  CHECK(table.at(4'999) == "text 4999");
  CHECK(table.at(0).empty());
  CHECK(table.size() == 5'000);
}

}  // namespace msprobe::support_text_pool_test
