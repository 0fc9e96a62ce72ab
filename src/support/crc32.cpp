// SPDX-License-Identifier: Apache-2.0
#include "support/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace msprobe {
namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320;
constexpr std::uint32_t kCastagnoli = 0x82F63B78;

// Table k advances a byte by k more bytes, so that eight bytes go in one step.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables(std::uint32_t polynomial) {
  Tables tables = {};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}
template <std::uint32_t polynomial>
constexpr Tables kTables = make_tables(polynomial);

// In what follows `state` is the checksum before its final inversion.

template <std::uint32_t polynomial = kPolynomial>
std::uint32_t by_tables(std::uint32_t state, const std::byte* at, std::size_t size) {
  if constexpr (std::endian::native == std::endian::little) {
    for (; size >= 8; at += 8, size -= 8) {
      std::uint64_t word;
      std::memcpy(&word, at, sizeof word);
      word ^= state;
      state = 0;
      for (std::size_t k = 0; k < 8; ++k) state ^= kTables<polynomial>[7 - k][(word >> (8 * k)) & 0xff];
    }
  }
  for (; size > 0; ++at, --size)
    state = (state >> 8) ^ kTables<polynomial>[0][(state ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
  return state;
}

#if defined(__x86_64__)

#define MSPROBE_CLMUL __attribute__((target("pclmul,sse4.1")))

/// `value` moved forward by the distance that the constants stand for, and the data there added.
MSPROBE_CLMUL inline __m128i fold(__m128i value, __m128i constants, __m128i data) {
  const __m128i low = _mm_clmulepi64_si128(value, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), data);
}

MSPROBE_CLMUL inline __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

/// Four streams of 16 bytes are folded forward over the data, then into one; what is left of it has the same
/// remainder as all that went in. At least 64 bytes.
MSPROBE_CLMUL std::uint32_t by_multiplication(std::uint32_t state, const std::byte* at, std::size_t size) {
  // x^(d+64) and x^d modulo the polynomial, bits reversed, for distances of 64 and of 16 bytes.
  const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i a = _mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = load(at + 16);
  __m128i c = load(at + 32);
  __m128i d = load(at + 48);
  for (at += 64, size -= 64; size >= 64; at += 64, size -= 64) {
    a = fold(a, by_64, load(at));
    b = fold(b, by_64, load(at + 16));
    c = fold(c, by_64, load(at + 32));
    d = fold(d, by_64, load(at + 48));
  }
  a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
  for (; size >= 16; at += 16, size -= 16) a = fold(a, by_16, load(at));
  std::array<std::byte, 16> rest;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest.data()), a);
  return by_tables(by_tables(0, rest.data(), rest.size()), at, size);
}

bool has_multiplication() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

#elif defined(__aarch64__)

__attribute__((target("+crc"))) std::uint32_t by_multiplication(std::uint32_t state, const std::byte* at,
                                                                std::size_t size) {
  for (; size >= 8; at += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    state = __builtin_aarch64_crc32x(state, word);
  }
  return by_tables(state, at, size);
}

bool has_multiplication() {
  constexpr unsigned long kCrc32 = 1UL << 7;  // HWCAP_CRC32
  return (::getauxval(AT_HWCAP) & kCrc32) != 0;
}

#else

std::uint32_t by_multiplication(std::uint32_t state, const std::byte* at, std::size_t size) {
  return by_tables(state, at, size);
}

bool has_multiplication() {
  return false;
}

#endif

constexpr std::size_t kWorthwhile = 64;

}  // namespace

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) {
  static const bool kFast = has_multiplication();
  const std::uint32_t state = ~crc;
  return ~(kFast && bytes.size() >= kWorthwhile ? by_multiplication(state, bytes.data(), bytes.size())
                                                : by_tables(state, bytes.data(), bytes.size()));
}

std::uint32_t crc32_portable(std::uint32_t crc, std::span<const std::byte> bytes) {
  return ~by_tables(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  return ~by_tables<kCastagnoli>(~std::uint32_t{0}, bytes.data(), bytes.size());
}

}  // namespace msprobe
