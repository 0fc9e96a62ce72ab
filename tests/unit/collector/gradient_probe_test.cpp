// SPDX-License-Identifier: Apache-2.0
// Task grad_probe through the C interface.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "unit/collector/recording.hpp"

namespace msprobe::gradient_probe_test {

using namespace msprobe::test;

namespace {

template <std::size_t N>
msprobe_status probe(Recording& recording, const char* name, const std::array<float, N>& values) {
  const std::array<std::int64_t, 2> shape = {1, N};
  const Tensor tensor = {.data = values.data(), .shape = shape};
  const msprobe_tensor descriptor = tensor.descriptor();
  return msprobe_probe_gradient(recording.session, name, &descriptor);
}

std::string file(const Recording& recording, const std::string& name) {
  return read_file(recording.folder.path() + "/rank0/" + name);
}

}  // namespace

TEST_CASE("grad_probe: a table a step, and the signs") {
  Recording recording(R"({"task": "grad_probe", "step": [1]})");
  CHECK(probe(recording, "w", std::array{1.0F}) == MSPROBE_SKIP);
  recording.step();
  CHECK(probe(recording, "w", std::array{3.0F, -4.0F, 0.0F}) == MSPROBE_OK);
  CHECK(probe(recording, "a,\"b", std::array{0.5F}) == MSPROBE_OK);
  CHECK_FALSE(std::filesystem::exists(recording.folder.path() + "/rank0/grad_summary_1.csv"));
  recording.step();
  CHECK(probe(recording, "w", std::array{1.0F}) == MSPROBE_SKIP);
  CHECK(file(recording, "grad_summary_1.csv") ==
        "\xEF\xBB\xBFparam_name,max,min,norm,shape\r\nw,3.0,-4.0,5.0,\"[1, "
        "3]\"\r\n\"a,\"\"b\",0.5,0.5,0.5,\"[1, 1]\"\r\n");
  const std::string signs = file(recording, "step1/w.npy");
  CHECK(signs.find("'descr': '|b1', 'fortran_order': False, 'shape': (1, 3)") != std::string::npos);
  CHECK(signs.substr(signs.size() - 3) == std::string("\1\0\0", 3));
  CHECK(std::distance(std::filesystem::directory_iterator(recording.folder.path() + "/rank0/step1"), {}) ==
        2);
  msprobe_info info = {};
  info.struct_size = sizeof info;
  CHECK(msprobe_session_info(recording.session, &info) == MSPROBE_OK);
  CHECK(info.entries == 2);
  CHECK(info.steps == 1);
}

TEST_CASE("grad_probe: intervals are open below and closed above; no interval counts NaN") {
  Recording recording(R"({"task": "grad_probe"})", R"({"grad_level": "L2", "bounds": [-1.5, 0, 2]})");
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  CHECK(probe(recording, "w", std::array{-kInf, -1.5F, -1.0F, 0.0F, -0.0F, 2.0F, kInf, kNan}) == MSPROBE_OK);
  recording.step();
  CHECK(file(recording, "grad_summary_0.csv") ==
        "\xEF\xBB\xBFparam_name,\"(-inf, -1.5]\",\"(-1.5, 0]\",\"(0, 2]\",\"(2, "
        "inf)\",=0,max,min,norm,shape\r\n"
        "w,0.25,0.375,0.125,0.125,0.25,nan,nan,nan,\"[1, 8]\"\r\n");
}

TEST_CASE("grad_probe: parameters that are not listed, other tasks, numbers without a sign") {
  Recording listed(R"({"task": "grad_probe"})", R"({"grad_level": "L0", "param_list": ["b", "a"]})");
  CHECK(probe(listed, "a", std::array{1.0F}) == MSPROBE_OK);
  CHECK(probe(listed, "c", std::array{1.0F}) == MSPROBE_SKIP);
  const std::array<std::int64_t, 1> shape = {1};
  const std::array<float, 2> parts = {1, 2};
  msprobe_tensor number = Tensor{.data = parts.data(), .shape = shape}.descriptor();
  number.dtype = MSPROBE_COMPLEX64;
  CHECK(msprobe_probe_gradient(listed.session, "b", &number) == MSPROBE_INVALID);
  CHECK(msprobe_probe_gradient(listed.session, nullptr, &number) == MSPROBE_INVALID);
  listed.step();
  CHECK(file(listed, "grad_summary_0.csv").find("\r\na,") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(listed.folder.path() + "/rank0/step0"));
  Recording other;
  CHECK(probe(other, "a", std::array{1.0F}) == MSPROBE_INVALID);
}

}  // namespace msprobe::gradient_probe_test
