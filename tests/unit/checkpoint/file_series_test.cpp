// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/file_series.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace msprobe::checkpoint::file_series_test {
namespace {

using Files = std::vector<std::string>;

}  // namespace

TEST_CASE("a file's place by its name") {
  const auto piece = series_place("model-00002-of-00005.safetensors");
  REQUIRE(piece);
  CHECK(piece->number == 2);
  CHECK(piece->count == 5);
  CHECK(!piece->ranks);
  const auto rank = series_place("model_world_size_8_rank_3.pt");
  REQUIRE(rank);
  CHECK(rank->number == 3);
  CHECK(rank->count == 8);
  CHECK(rank->ranks);
  CHECK(!series_place("model_rank7.pt")->count);
  // Parts of one piece belong to one series, whatever part they are.
  CHECK(series_place("shard-00001-model-00001-of-00002.safetensors")->stem ==
        series_place("shard-00002-model-00002-of-00002.safetensors")->stem);
  for (const char* name : {"model.safetensors", "rank.pt", "of-the-rank_x.pt", "-of-", "a--of-3", "a-1-of-",
                           "model-99999999999999999999-of-3.bin", "rank_-3.pt"}) {
    CAPTURE(name);
    CHECK(!series_place(name));
  }
}

TEST_CASE("files that are missing are known by their numbers") {
  const auto whole = series_among({"a-00001-of-00002.bin", "a-00002-of-00002.bin", "other.bin"});
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].files == Files{"a-00001-of-00002.bin", "a-00002-of-00002.bin"});
  CHECK(missing_text(whole[0]).empty());
  CHECK(missing_text(series_among({"a-00002-of-00003.bin"})[0]) == "numbers 1, 3 of 3 are missing");
  CHECK(missing_text(series_among({"m_world_size_3_rank_0.pt", "m_world_size_3_rank_2.pt"})[0]) ==
        "rank 1 of 3 is missing");
  // Without a count only the gaps are known.
  CHECK(missing_text(series_among({"m_rank0.pt", "m_rank2.pt"})[0]) == "rank 1 is missing");
  CHECK(missing_text(series_among({"a-00001-of-1048576.bin"})[0]) ==
        "numbers 2, 3, 4, 5, 6 and perhaps more of 1048576 are missing");
  // Ranks are put in the order of their numbers, not of their digits.
  CHECK(series_among({"r_rank10.pt", "r_rank9.pt"})[0].files == Files{"r_rank9.pt", "r_rank10.pt"});
}

}  // namespace msprobe::checkpoint::file_series_test
