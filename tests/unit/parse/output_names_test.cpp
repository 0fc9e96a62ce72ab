// SPDX-License-Identifier: Apache-2.0
#include "parse/output_names.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "parse/md5.hpp"

namespace msprobe::parse::output_names_test {

TEST_CASE("MD5 of the texts in RFC 1321") {
  const auto hex = [](const std::string& text) { return fmt::format("{:02x}", fmt::join(md5(text), "")); };
  CHECK(hex("") == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(hex("a") == "0cc175b9c0f1b6a831c399e269772661");
  CHECK(hex("message digest") == "f96b697d7cb7938d525a2f31aaf161d0");
  CHECK(hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") ==
        "d174ab98d277d9f5a5611c2c9f419d9f");
  CHECK(hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
        "57edf4a22be3c955ac49da2e2107b67a");
  // Around the length where the padding takes another block; from Python's hashlib.
  CHECK(hex(std::string(55, 'x')) == "04364420e25c512fd958a70738aa8f72");
  CHECK(hex(std::string(56, 'x')) == "668a72d5ba17f08e62dabcafad6db14b");
  CHECK(hex(std::string(64, 'x')) == "c1bb4f81d892b2d57947682aeb252456");
}

TEST_CASE("a long name's UUID is Python's uuid3 of it") {
  CHECK(name_uuid("python.org") == "6fa459eaee8a3ca4894edb77e160355e");  // the example in Python's manual
  CHECK(name_uuid("") == "c87ee6744ddc3efea74edfe25da5d7b3");
}

TEST_CASE("stems") {
  CHECK(stem_of("a.b.bin") == "a.b");
  CHECK(stem_of("a.BIN") == "a");
  CHECK(stem_of("a.safeTensors") == "a");
  CHECK(stem_of("Add.x.1.2.1636595794731103") == "Add.x.1.2.1636595794731103");
  CHECK(stem_of("bin") == "bin");
  CHECK(has_known_ending("x.npz"));
  CHECK_FALSE(has_known_ending("x.npz.1"));
}

TEST_CASE("parts of file names are safe and differ") {
  CHECK(safe_part("layer.0/weight") == "layer.0_weight");
  CHECK(safe_part("../../etc") == ".._.._etc");
  CHECK(safe_part(std::string("a\0\n\x1b", 4)) == "a___");
  CHECK(safe_part("") == "_");
  CHECK(safe_part(std::string(1000, 'a')).size() == 128);
  SafeParts parts;
  CHECK(parts.next("a/b") == "a_b");
  CHECK(parts.next("a:b") == "a_b.1");
  CHECK(parts.next("a_b.3") == "a_b.3");
  CHECK(parts.next("a b") == "a_b.4");
}

}  // namespace msprobe::parse::output_names_test
