// SPDX-License-Identifier: Apache-2.0
#include "formats/dcp.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/error.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::formats::dcp_test {
namespace {

std::string data_folder() {
  return test::in_source("tests/data/");
}

DcpMetadata read(const std::string& path) {
  return read_dcp_metadata(*open_file(data_folder() + path));
}

const DcpTensor& find(const DcpMetadata& metadata, const std::string& name) {
  const auto found = std::find_if(metadata.tensors.begin(), metadata.tensors.end(),
                                  [&](const DcpTensor& tensor) { return tensor.name == name; });
  REQUIRE(found != metadata.tensors.end());
  return *found;
}

}  // namespace

TEST_CASE("what PyTorch wrote on four ranks") {
  const DcpMetadata metadata = read("ckpt/real/dcp4/.metadata");
  CHECK(metadata.tensors.size() == 39);
  // Cut by rows and columns over a mesh of 2 x 2.
  const DcpTensor& both = find(metadata, "model.model.layers.0.self_attn.q_proj.weight");
  CHECK(both.dtype == tensor::DType::float32);
  CHECK(both.size == std::vector<std::int64_t>{16, 16});
  REQUIRE(both.chunks.size() == 4);
  for (const DcpChunk& chunk : both.chunks) {
    CHECK(chunk.sizes == std::vector<std::int64_t>{8, 8});
    CHECK(chunk.file.ends_with(".distcp"));
    CHECK(chunk.length > 256);
    CHECK(chunk.problem.empty());
  }
  // Every rank holds a copy, and one chunk is enough.
  CHECK(find(metadata, "model.model.norm.weight").chunks.size() == 1);
}

TEST_CASE("objects beside the tensors are only named") {
  const DcpMetadata metadata = read("golden/ckpt/checkpoints/torch_dist_synthetic/iter_0000005/.metadata");
  CHECK(metadata.tensors.size() == 10);
  CHECK(metadata.objects.size() == 5);
}

TEST_CASE("what is no metadata is refused with the reason") {
  const auto complaint = [](const std::string& bytes) -> std::string {
    return test::message_of([&] { read_dcp_metadata(*memory_source(bytes, "some.metadata")); }, "");
  };
  CHECK(complaint("\x80\x02}.").find("required members are missing") != std::string::npos);
  CHECK(complaint("\x80\x02K\x01.").find("some.metadata: ") == 0);
  CHECK(complaint("").find("some.metadata: ") == 0);
  CHECK(complaint("\x80\x02}.x").find("bytes follow") != std::string::npos);
  const std::string text = read_all(*open_file(data_folder() + "ckpt/real/dcp4/.metadata"), 1 << 20);
  for (std::size_t cut = 0; cut < text.size(); cut += 97) {
    CHECK_THROWS_AS(read_dcp_metadata(*memory_source(text.substr(0, cut), "cut")), FormatError);
  }
}

}  // namespace msprobe::formats::dcp_test
