// SPDX-License-Identifier: Apache-2.0
#include "tensor/isa.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "tensor/kernels.hpp"

namespace msprobe::tensor {
namespace {

std::vector<Isa> detect() {
  std::vector<Isa> found = {Isa::scalar};
#if defined(__x86_64__)
  __builtin_cpu_init();
  found.push_back(Isa::sse2);
  // These also check whether the operating system saves the wide registers.
  if (__builtin_cpu_supports("avx2")) found.push_back(Isa::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    found.push_back(Isa::avx512);
  }
#elif defined(__aarch64__)
  found.push_back(Isa::neon);
#endif
  return found;
}

const std::vector<Isa>& detected() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

}  // namespace

std::vector<Isa> available_isas() {
  return detected();
}

Isa best_isa() {
  return detected().back();
}

std::string_view isa_name(Isa isa) {
  constexpr std::string_view kNames[] = {"scalar", "sse2", "avx2", "avx512", "neon"};
  return kNames[static_cast<std::size_t>(isa)];
}

const Kernels& kernels_for(Isa isa) {
  const std::vector<Isa>& isas = detected();
  if (std::find(isas.begin(), isas.end(), isa) != isas.end()) {
    switch (isa) {
      case Isa::scalar:
        return kernels_scalar::kKernels;
#if defined(__x86_64__)
      case Isa::sse2:
        return kernels_sse2::kKernels;
      case Isa::avx2:
        return kernels_avx2::kKernels;
      case Isa::avx512:
        return kernels_avx512::kKernels;
#elif defined(__aarch64__)
      case Isa::neon:
        return kernels_neon::kKernels;
#endif
      default:
        break;
    }
  }
  throw std::invalid_argument("this machine cannot run the " + std::string(isa_name(isa)) + " kernels");
}

}  // namespace msprobe::tensor
