// SPDX-License-Identifier: Apache-2.0
#include "formats/block_types.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error.hpp"

using msprobe::FormatError;
using msprobe::formats::BlockContent;
using msprobe::formats::BlockType;
using msprobe::formats::layout_of;
using msprobe::formats::unpacked_source;

namespace {

struct Case {
  BlockType type;
  std::size_t step;  // from one of the elements below to the next
  std::string_view block;
  std::vector<float> values;
};

// Random bytes with plain scales, and what dequantize() of the package gguf 0.19.0 makes of them.
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {BlockType::q4_0,
       3,
       "00b4e5f1a94106a0956a26afbccdafe562f9",
       {0.75F, 1.75F, 0.75F, -1.75F, -1.75F, -0.25F, -0.5F, -0.5F, 1.5F, -1.0F, 0.5F}},
      {BlockType::q4_1,
       3,
       "0030003842276ad5ab2da7394551370e99b2d74c",
       {0.75F, 1.125F, 1.375F, 0.625F, 1.625F, 2.0F, 1.25F, 0.75F, 1.0F, 0.5F, 2.125F}},
      {BlockType::q5_0,
       3,
       "0030fa48d732a1df70aca1e926115901dd06f27f8f06",
       {-1.875F, 1.5F, 0.75F, -1.875F, -1.75F, -1.25F, 0.875F, -0.25F, -1.375F, -2.0F, -1.0F}},
      {BlockType::q5_1,
       3,
       "00300038f9bd0ccc21397c1ec795ca7748dc03d17a88934d",
       {2.625F, 4.25F, 3.75F, 2.0F, 3.75F, 4.125F, 3.375F, 1.625F, 1.0F, 4.125F, 3.625F}},
      {BlockType::q8_0,
       3,
       "00307357a2e64647f03e2fb81f223f4192c58efd5185f0711ef7677a1f132a818d88",
       {14.375F, -3.25F, -2.0F, -9.0F, 7.875F, -7.375F, 10.125F, 14.125F, 12.875F, 2.375F, -14.375F}},
      {BlockType::q2_k,
       25,
       "a100b28d6b236b82481bd9fe630dc3ce3be4ebcab72f45b35223479f6e794d57037e2cfde9e15a77"
       "89781e3721a557d8e5a703296dcb81db3f65cf9c1bdc5d1d8fc83f0b0bb4db71be572209851d3d24"
       "00300038",
       {-4.625F, 0.0F, 0.875F, -1.625F, -0.25F, -3.5F, 3.625F, -3.125F, -1.875F, -5.25F, -6.0F}},
      {BlockType::q3_k,
       25,
       "fe4363f82f4759778955f6ced681cbea7179ced2c8f814a13472ff70ce369d8385452a44f318337f"
       "08cd1e614f235d3f83bc45fee9ee0403a79be118544441317c9311f85e0429b19f7ec0e156f65a33"
       "22e791b880ee995e3f0d307d2fbaf400693a179e0d027ed4e58be7a90030",
       {2.625F, -3.25F, -0.25F, -0.75F, -0.75F, -1.5F, -3.625F, 0.0F, -6.0F, -5.75F, 0.0F}},
      {BlockType::q4_k,
       25,
       "0030003855638144eb6603f7b2725de11fe6ac2f88a68182869793f0aad6ded8116e3ab51681c4a3"
       "74fec70a68b3e4bdc92b387987416c17ec90963ec766888ab4b80eba7c5cfd81121bea9cee1810df"
       "d5169faf26cd7b5c30c8aba44d972299e8c7b41b9a1d2b0f180600a974d63b6332202c998e82b252"
       "2c49c4394c7d73265b6aaf61b288fbd0aecfa76661622361",
       {17.875F, 15.25F, -5.875F, 0.25F, -23.5F, -27.0F, -4.75F, 8.75F, 65.0F, -26.75F, -9.75F}},
      {BlockType::q5_k,
       25,
       "00300038aa388ffabd0a6a6412b209971e2d827076f7e49ab8fa197271be53a3442b128cdad72bad"
       "0f8aeef42a0b9a26d74fc78f2562b8701097a55b5510543d27ed600de3200a6749307fd37899c118"
       "819af6674394c3f7aa5f93f32c810a37ca7bf1013ccdf8ab8ab4a6039954e84cbe3b3f7f1183c3df"
       "8375c517b4e786a9aadf7488f892b12191387ad86aca56d8531c927b931fe8f16e795b9b331767e7"
       "12dbe8f5331dd9917f01e64710dd3c25",
       {6.25F, -30.5F, 149.0F, -15.375F, 11.0F, 134.25F, -12.25F, 1.0F, 63.75F, -5.625F, 193.75F}},
      {BlockType::q6_k,
       25,
       "f4d21690a049453135550ec0193a8bed1783d53ec944658d1d28960c44b0382e93438e60788d51e2"
       "79a131f8130b3ea4bd2f5d95e57bd791436d840f4e6654608135bbfb885d346959a49b36402a4f3d"
       "cc489fb6511fbe09e5d72bf834e04fe028ca4991e02abd77279fedc206d2318ca8b8287a6f4b7952"
       "09575d7277d456c0f6e81a0e584d730660f56bb8b588475f7066c1cd7109c5079a933ee857db751f"
       "f223726ad90697f749f7c61bd80163a8c9a356ba91d79f6d24ee3a14ebd41386d8faef6e9e6c70df"
       "41dba9aeb5301e580030",
       {-20.0F, -18.0F, -261.25F, -343.0F, -126.0F, -90.75F, -138.75F, -130.5F, 253.125F, -75.0F, -297.0F}},
      {BlockType::iq4_nl,
       3,
       "00301d970686934768f005af0d5a23ddb465",
       {8.625F, -2.75F, 0.125F, 14.125F, -8.125F, -4.375F, -15.875F, -6.125F, -15.875F, -4.375F, 4.75F}},
      {BlockType::iq4_xs,
       25,
       "003043e76ea3e384969be487a440e7c3ea5204cabbf9bfe8e648caff7704ac26d227a069c392f4ee"
       "b361c24ef366530178b479933822c3c0cf6b3cbeb4af7ecff21cd3a408f80223e393ddd808453d6b"
       "ad90efd8aba2b4d096226df8d446a703fcb2bdddd8e1e2a09a633f7c349903cb463dc4f3ea335483"
       "e56f64168344d1b96b410c3bade3f639",
       {-82.5F, -131.25F, -172.25F, 235.625F, 36.75F, -84.75F, -154.375F, 31.75F, -11.0F, 339.0F, -381.0F}},
      {BlockType::mxfp4,
       3,
       "7d4a62312e48d232ddc3f3e848e3f55cb7",
       {-0.25F, -1.0F, 0.25F, 0.375F, 0.375F, 1.5F, 0.375F, -0.75F, -0.5F, 0.5F, 0.75F}},
  };
  return kCases;
}

std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

std::vector<float> read(const msprobe::ByteSource& source) {
  std::vector<float> values(static_cast<std::size_t>(source.size()) / sizeof(float));
  source.read_at(0, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<float> half_steps(BlockType type, std::string_view hex) {
  return read(*unpacked_source(msprobe::memory_source(from_hex(hex)), type, BlockContent::half_steps));
}

}  // namespace

TEST_CASE("blocks become what the format's own package makes of them") {
  for (const Case& each : cases()) {
    CAPTURE(static_cast<int>(each.type));
    const auto source =
        unpacked_source(msprobe::memory_source(from_hex(each.block)), each.type, BlockContent::values);
    const std::vector<float> values = read(*source);
    REQUIRE(values.size() == layout_of(each.type).elements);
    std::vector<float> chosen;
    for (std::size_t i = 0; i < values.size(); i += each.step) chosen.push_back(values[i]);
    CHECK(chosen == each.values);
  }
}

TEST_CASE("any stretch of bytes is the same as in the whole") {
  for (const Case& each : cases()) {
    std::vector<std::byte> blocks;
    for (int i = 0; i < 300; ++i) {
      std::vector<std::byte> block = from_hex(each.block);
      block[block.size() / 2] = static_cast<std::byte>(i);
      blocks.insert(blocks.end(), block.begin(), block.end());
    }
    const auto source =
        unpacked_source(msprobe::memory_source(std::move(blocks)), each.type, BlockContent::values);
    const std::vector<float> whole = read(*source);
    const auto bytes = std::as_bytes(std::span(whole));
    for (const std::size_t begin : {std::size_t{1}, std::size_t{127}, std::size_t{4095}, bytes.size() - 3}) {
      for (const std::size_t length : {std::size_t{0}, std::size_t{3}, std::size_t{5000}, bytes.size() / 2}) {
        const std::size_t count = std::min(length, bytes.size() - begin);
        std::vector<std::byte> part(count);
        source->read_at(begin, part);
        CHECK(std::memcmp(part.data(), bytes.data() + begin, count) == 0);
      }
    }
    std::vector<std::byte> beyond(2);
    CHECK_THROWS_AS(source->read_at(source->size() - 1, beyond), FormatError);
  }
}

TEST_CASE("half a step is half a scale, and what the rounding of the scale adds") {
  // Scale 0.125; codes 0, 1, -128 and 127.
  const std::string q8 =
      "0030"
      "0001807f" +
      std::string(56, '0');
  const std::vector<float> eight = half_steps(BlockType::q8_0, q8);
  CHECK(eight[0] == 0.0625F);
  CHECK(eight[1] == 0.0625F + 0x1p-14F);
  CHECK(eight[2] == 0.0625F + 0x1p-7F);
  CHECK(eight[3] == 0.0625F + 127 * 0x1p-14F);
  // Scale 0.125 and the offset 2.
  const std::vector<float> four = half_steps(BlockType::q4_1,
                                             "00300040"
                                             "0f" +
                                                 std::string(30, '0'));
  CHECK(four[0] == 0.0625F + 15 * 0x1p-14F + 0x1p-10F);
  CHECK(four[1] == 0.0625F + 0x1p-10F);
  // Scale 1/2 in halves of E2M1: 0, 1/2 … 2, 3, 4, 6.
  const std::vector<float> fp4 = half_steps(BlockType::mxfp4,
                                            "7f"
                                            "0723" +
                                                std::string(28, '0'));
  CHECK(fp4[0] == 1);
  CHECK(fp4[1] == 0.25F);
  // The smallest number that float16 has.
  const std::vector<float> tiny = half_steps(BlockType::q4_0,
                                             "0100"
                                             "0f" +
                                                 std::string(30, '0'));
  CHECK(tiny[0] == 0x1p-25F + 7 * 0x1p-25F);
  const std::vector<float> none = half_steps(BlockType::q4_0,
                                             "0000"
                                             "0f" +
                                                 std::string(30, '0'));
  // A scale that is too small for float16 is stored as 0, the codes are not.
  CHECK(none[0] == 0x1p-26F + 7 * 0x1p-25F);
  CHECK(none[16] == 0x1p-26F + 8 * 0x1p-25F);
}

TEST_CASE("a block that is cut off is refused") {
  CHECK_THROWS_AS(
      unpacked_source(msprobe::memory_source(std::string(35, '\0')), BlockType::q8_0, BlockContent::values),
      FormatError);
  CHECK(unpacked_source(msprobe::memory_source(std::string_view()), BlockType::q4_k, BlockContent::values)
            ->size() == 0);
}
