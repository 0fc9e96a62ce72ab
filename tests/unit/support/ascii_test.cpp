// SPDX-License-Identifier: Apache-2.0
#include "support/ascii.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>

#include "support/result_name.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::ascii_test {

using namespace msprobe;

TEST_CASE("letters of ASCII alone have a lower case") {
  CHECK(lower_case("Torch.BFloat16_") == "torch.bfloat16_");
  CHECK(lower_case("\xC3\x84@[Z") == "\xC3\x84@[z");
}

TEST_CASE("a whole number is the whole text, and fits") {
  CHECK(whole_number<std::int64_t>("-9223372036854775808") == INT64_MIN);
  CHECK(whole_number<std::uint32_t>("007") == 7);
  CHECK(whole_number<std::uint8_t>("255") == 255);
  CHECK_FALSE(whole_number<std::uint8_t>("256"));
  for (const char* const text : {"", " 1", "1 ", "+1", "1.0", "0x1", "-", "1_0"}) {
    CAPTURE(text);
    CHECK_FALSE(whole_number<std::int64_t>(text));
  }
  CHECK_FALSE(whole_number<std::uint64_t>("-1"));
}

TEST_CASE("no two results have one time") {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch / "out";
  const std::time_t when = 1'790'000'000;
  CHECK(claim_time_stamp(folder, when) == time_stamp(when));
  // Claimed by a run that has written nothing yet; then by files in the folder and in one in it.
  CHECK(claim_time_stamp(folder, when) == time_stamp(when + 1));
  std::ofstream(folder + "/a_" + time_stamp(when + 2) + ".csv") << "x";
  std::filesystem::create_directory(folder + "/step0");
  std::ofstream(folder + "/step0/a_" + time_stamp(when + 3) + ".csv") << "x";
  CHECK(claim_time_stamp(folder, when) == time_stamp(when + 4));
  std::filesystem::create_directory(folder + "/" + time_stamp(when + 5));
  CHECK(claim_time_stamp(folder, when + 5) == time_stamp(when + 6));
  CHECK(whole_number<std::int64_t>(time_stamp()) > 20200101000000);
}

}  // namespace msprobe::ascii_test
