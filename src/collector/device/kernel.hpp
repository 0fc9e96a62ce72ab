// SPDX-License-Identifier: Apache-2.0
// The kernel that measures tensors on a GPU: statistics, CRC-32 and xor of several tensors in one launch.
// NVRTC or hipRTC compiles it from this text at run time, so it includes nothing; the C++ compiler compiles
// the same text over an emulation of blocks and threads (emulation.hpp).
//
// All results depend on the tensor alone, not on the launch. Elements are taken in groups of 16 bytes. Group
// g belongs to lane g % 256, and each lane sees its groups in order. A tensor is cut into chunks of whole
// rows of 256 groups, whose length depends on its size alone. Lanes and chunks are combined in a fixed order.
// A block works on one chunk at a time with any number of threads.
#pragma once

#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
#define MSPROBE_ON_GPU
#define MSPROBE_DEVICE __device__ inline
// Code that is large or not executed for each element is compiled once: then compiling takes a second, else a
// minute.
#define MSPROBE_APART __device__ __noinline__
#define MSPROBE_UNROLL _Pragma("unroll")
#define MSPROBE_LOOP _Pragma("unroll 1")
#else
#define MSPROBE_DEVICE inline
#define MSPROBE_APART inline
#define MSPROBE_UNROLL
#define MSPROBE_LOOP
#endif

namespace msprobe::gpu {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u32 kLanes = 256;
constexpr u32 kLevels = 8;         // how often the lanes are halved
constexpr u32 kGroup = 16;         // bytes that a lane takes at once
constexpr u32 kMostChunks = 1024;  // of a tensor
constexpr u32 kMostAxes = 5;
constexpr u32 kMostJobs = 28;  // the parameters of a kernel are 4096 bytes at most

enum MeasureTask : u8 { kStatistics = 1, kCrc = 2, kXor = 4 };

/// Numbers as in msprobe_dtype.
enum ElementCode : u8 {
  kFloat64 = 0,
  kFloat32,
  kFloat16,
  kBfloat16,
  kFloat8E4m3fn,
  kFloat8E5m2,
  kFloat8E4m3fnuz,
  kFloat8E5m2fnuz,
  kFloat8E8m0fnu,
  kInt64 = 10,
  kInt32,
  kInt16,
  kInt8,
  kUint64,
  kUint32,
  kUint16,
  kUint8,
  kBool,
  kComplex32,
  kComplex64,
};

/// Elements to measure, and the tasks for them.
struct Job {
  const u8* data;
  u64 count;  // of elements
  u64 flip;   // exclusive or on each 8 bytes, before the checksums, to change signs
  u32 first_chunk;
  u32 chunks;
  u32 chunk_rows;
  u32 row;  // of the results
  u8 type;
  u8 tasks;
  u8 contiguous;
  u8 rank;
  u32 unused;
  u32 chunk_power;  // x to the power of the bits of a chunk, and of the last one, filled up to whole rows:
  u32 last_power;   // a remainder is multiplied by this to come before the chunk
  i64 length[kMostAxes];  // of the axes, the innermost first
  i64 stride[kMostAxes];  // in elements
};

/// The results. Numbers that no task asked for are 0.
struct TensorTally {
  double sum;
  double squares;
  u64 max;  // the bits of the working type; the lowest number for a tensor that is all NaN
  u64 min;
  u64 nan;
  u64 pos_inf;
  u64 neg_inf;
  u64 zero;
  u64 exclusive_or;  // exclusive or of the words of 8 bytes; zeros fill up the last one
  u32 crc;           // the remainder of the bytes, up to whole rows: without a start value, not inverted
  u32 unused;
};

struct KernelLaunch {
  TensorTally* rows;      // the results; each job has the number of its row
  TensorTally* partials;  // kMostChunks for each job
  u32* done;              // for each job; 0 before and after
  u32 jobs;
  u32 chunks;         // of all jobs
  u32 tasks;          // of any job
  u32 skip;           // the factor that moves a remainder over the other lanes' groups
  u32 fold[kLevels];  // the same for 128, 64, ... groups
  Job job[kMostJobs];
};
static_assert(sizeof(KernelLaunch) <= 4096, "more than the parameters of a kernel may be");

/// The memory that the threads of a block share.
struct Shared {
  TensorTally lane[kLanes];
  u32 step[4][256];       // a byte's remainder after the byte and k more
  u32 skip[4][256];       // byte k of a remainder, moved over the other lanes' groups
  u32 fold[kLevels][32];  // the factor for the left half of the lanes, and that times x, x^2, ...
  Job job;
  u32 index;
  u32 last;
};

// ---------------------------------------------------------------------- remainders modulo CRC-32's
// polynomial

constexpr u32 kPolynomial = 0xEDB88320;
constexpr u32 kOne = 0x80000000;    // bits are reversed: the highest stands for x^0
constexpr u32 kOrder = 0xFFFFFFFF;  // x^kOrder is 1

MSPROBE_DEVICE u32 times_x(u32 value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

MSPROBE_APART u32 multiply(u32 a, u32 b) {
  u32 product = 0;
  MSPROBE_LOOP
  for (; a != 0; a <<= 1) {
    if ((a & kOne) != 0) product ^= b;
    b = times_x(b);
  }
  return product;
}

/// The product with a factor; multiples[i] is the factor times x^i, so that the terms do not wait for one
/// another.
MSPROBE_DEVICE u32 multiply_by(const u32 (&multiples)[32], u32 a) {
  u32 product = 0;
  MSPROBE_UNROLL
  for (u32 i = 0; i < 32; ++i) product ^= multiples[i] & (0U - ((a >> (31 - i)) & 1U));
  return product;
}

/// x^(8 * bytes); a negative number of bytes divides.
MSPROBE_APART u32 x_to_bytes(i64 bytes) {
  i64 rest = bytes % static_cast<i64>(kOrder);
  if (rest < 0) rest += kOrder;
  u32 power = kOne;
  u32 square = kOne >> 8;
  MSPROBE_LOOP
  for (; rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) power = multiply(power, square);
    square = multiply(square, square);
  }
  return power;
}

// ---------------------------------------------------------------------- elements

#ifdef MSPROBE_ON_GPU
MSPROBE_DEVICE float float_of(u32 bits) {
  return __uint_as_float(bits);
}
MSPROBE_DEVICE double double_of(u64 bits) {
  return __longlong_as_double(static_cast<i64>(bits));
}
MSPROBE_DEVICE u64 bits_of(float value) {
  return __float_as_uint(value);
}
MSPROBE_DEVICE u64 bits_of(double value) {
  return static_cast<u64>(__double_as_longlong(value));
}
MSPROBE_DEVICE double root(double value) {
  return sqrt(value);
}
#else
MSPROBE_DEVICE float float_of(u32 bits) {
  return __builtin_bit_cast(float, bits);
}
MSPROBE_DEVICE double double_of(u64 bits) {
  return __builtin_bit_cast(double, bits);
}
MSPROBE_DEVICE u64 bits_of(float value) {
  return __builtin_bit_cast(u32, value);
}
MSPROBE_DEVICE u64 bits_of(double value) {
  return __builtin_bit_cast(u64, value);
}
MSPROBE_DEVICE double root(double value) {
  return __builtin_sqrt(value);
}
#endif
MSPROBE_DEVICE u64 bits_of(i64 value) {
  return static_cast<u64>(value);
}
MSPROBE_DEVICE u64 bits_of(u64 value) {
  return value;
}

constexpr u32 kFloatInfinity = 0x7F800000;
constexpr u32 kFloatNan = 0x7FC00000;

/// The initial values of maxima and minima, and the conversion back from bits.
template <typename T>
struct Working;
template <>
struct Working<float> {
  static MSPROBE_DEVICE float lowest() { return float_of(0x80000000 | kFloatInfinity); }
  static MSPROBE_DEVICE float highest() { return float_of(kFloatInfinity); }
  static MSPROBE_DEVICE float of(u64 bits) { return float_of(static_cast<u32>(bits)); }
};
template <>
struct Working<double> {
  static MSPROBE_DEVICE double lowest() { return double_of(0xFFF0000000000000); }
  static MSPROBE_DEVICE double highest() { return double_of(0x7FF0000000000000); }
  static MSPROBE_DEVICE double of(u64 bits) { return double_of(bits); }
};
template <>
struct Working<i64> {
  static MSPROBE_DEVICE i64 lowest() { return -0x7FFFFFFFFFFFFFFF - 1; }
  static MSPROBE_DEVICE i64 highest() { return 0x7FFFFFFFFFFFFFFF; }
  static MSPROBE_DEVICE i64 of(u64 bits) { return static_cast<i64>(bits); }
};
template <>
struct Working<u64> {
  static MSPROBE_DEVICE u64 lowest() { return 0; }
  static MSPROBE_DEVICE u64 highest() { return 0xFFFFFFFFFFFFFFFF; }
  static MSPROBE_DEVICE u64 of(u64 bits) { return bits; }
};

/// The common part of elements that are read as numbers of type W.
template <typename W, u32 size, bool floating = true>
struct ElementOf {
  using Work = W;
  static constexpr u32 kSize = size;
  static constexpr bool kFloating = floating;
};

struct Double : ElementOf<double, 8> {
  static MSPROBE_DEVICE double value(u64 bits) { return double_of(bits); }
};

struct Single : ElementOf<float, 4> {
  static MSPROBE_DEVICE float value(u64 bits) { return float_of(static_cast<u32>(bits)); }
};

struct Bfloat16 : ElementOf<float, 2> {
  static MSPROBE_DEVICE float value(u64 bits) { return float_of(static_cast<u32>(bits) << 16); }
};

enum class Highest { ieee, all_ones_is_nan, minus_zero_is_nan };

/// Numbers of 8 and 16 bits whose exponent has few bits.
template <u32 size, u32 fraction_bits, u32 bias, Highest highest>
struct SmallFloat : ElementOf<float, size> {
  static MSPROBE_DEVICE float value(u64 bits) {
    const u32 code = static_cast<u32>(bits);
    const u32 sign_bit = 1U << (8 * size - 1);
    const u32 magnitude = code & (sign_bit - 1);
    const u32 fraction_mask = (1U << fraction_bits) - 1;
    const u32 exponent = magnitude >> fraction_bits;
    const u32 most = (sign_bit - 1) >> fraction_bits;
    const u32 sign = (code & sign_bit) != 0 ? 0x80000000 : 0;
    if (highest == Highest::ieee && exponent == most)
      return float_of((magnitude & fraction_mask) != 0 ? kFloatNan : sign | kFloatInfinity);
    if (highest == Highest::all_ones_is_nan && magnitude == sign_bit - 1) return float_of(kFloatNan);
    if (highest == Highest::minus_zero_is_nan && code == sign_bit) return float_of(kFloatNan);
    if (exponent == 0) {
      // The magnitude is a whole number of the smallest steps.
      const float step = float_of((128 - bias - fraction_bits) << 23);
      const float small = static_cast<float>(magnitude) * step;
      return sign != 0 ? -small : small;
    }
    return float_of(sign | ((magnitude << (23 - fraction_bits)) + ((127 - bias) << 23)));
  }
};
using Half = SmallFloat<2, 10, 15, Highest::ieee>;
using E4m3fn = SmallFloat<1, 3, 7, Highest::all_ones_is_nan>;
using E5m2 = SmallFloat<1, 2, 15, Highest::ieee>;
using E4m3fnuz = SmallFloat<1, 3, 8, Highest::minus_zero_is_nan>;
using E5m2fnuz = SmallFloat<1, 2, 16, Highest::minus_zero_is_nan>;

/// Powers of two.
struct E8m0fnu : ElementOf<float, 1> {
  static MSPROBE_DEVICE float value(u64 bits) {
    const u32 code = static_cast<u32>(bits);
    return float_of(code == 255 ? kFloatNan : code == 0 ? 0x00400000 : code << 23);
  }
};

/// A complex number counts by its modulus, which is infinite if a part is.
template <class Part>
struct Complex : ElementOf<float, 2 * Part::kSize> {
  static MSPROBE_DEVICE float value(u64 bits) {
    const float infinity = float_of(kFloatInfinity);
    const float real = Part::value(bits & ((1ULL << (8 * Part::kSize)) - 1));
    const float imaginary = Part::value(bits >> (8 * Part::kSize));
    if (real == infinity || real == -infinity || imaginary == infinity || imaginary == -infinity)
      return infinity;
    const double a = real;
    const double b = imaginary;
    return static_cast<float>(root(a * a + b * b));
  }
};

template <typename T, typename W = i64>
struct Integer : ElementOf<W, sizeof(T), false> {
  static MSPROBE_DEVICE W value(u64 bits) { return static_cast<T>(bits); }
};

/// A group of elements, laid out as in memory.
struct alignas(16) Words {
  u64 word[2];
};

MSPROBE_DEVICE u64 element_at(const u8* at, u32 size) {
  if (size == 8) return *reinterpret_cast<const u64*>(at);
  if (size == 4) return *reinterpret_cast<const u32*>(at);
  if (size == 2) return *reinterpret_cast<const unsigned short*>(at);
  return *at;
}

/// The offset of element `index`, in elements from the first.
template <typename Number>
MSPROBE_DEVICE i64 offset_of(const Job& job, Number index) {
  i64 offset = 0;
  MSPROBE_LOOP
  for (u32 axis = 0; axis + 1 < job.rank; ++axis) {
    const Number length = static_cast<Number>(job.length[axis]);
    const Number next = index / length;
    offset += static_cast<i64>(index - next * length) * job.stride[axis];
    index = next;
  }
  return job.rank == 0 ? 0 : offset + static_cast<i64>(index) * job.stride[job.rank - 1];
}

/// Reads `n` elements from number `first` on, one by one, and fills up with zeros.
MSPROBE_APART Words gather(const Job& job, u32 size, u64 first, u32 n) {
  Words words = {};
  MSPROBE_LOOP
  for (u32 e = 0; e < n; ++e) {
    const u64 index = first + e;
    i64 offset = static_cast<i64>(index);
    if (job.contiguous == 0)
      offset = job.count >> 32 == 0 ? offset_of(job, static_cast<u32>(index)) : offset_of(job, index);
    const u64 bits = element_at(job.data + offset * static_cast<i64>(size), size);
    const u32 place = e * size;
    if (place < 8) {
      words.word[0] |= bits << (8 * place);
    } else {
      words.word[1] |= bits << (8 * (place - 8));
    }
  }
  return words;
}

template <class Element>
MSPROBE_DEVICE u64 bits_in(const Words& words, u32 e) {
  constexpr u32 kSize = Element::kSize;
  const u64 shifted = words.word[e * kSize / 8] >> (8 * (e * kSize % 8));
  return kSize == 8 ? shifted : shifted & ((1ULL << (8 * kSize % 64)) - 1);
}

// ---------------------------------------------------------------------- tallies

template <typename Work>
MSPROBE_DEVICE TensorTally empty_tally() {
  TensorTally tally = {};
  tally.max = bits_of(Working<Work>::lowest());
  tally.min = bits_of(Working<Work>::highest());
  return tally;
}

/// Combines everything but the remainders.
template <typename Work>
MSPROBE_APART void combine(TensorTally& left, const TensorTally& right) {
  left.sum += right.sum;
  left.squares += right.squares;
  if (Working<Work>::of(right.max) > Working<Work>::of(left.max)) left.max = right.max;
  if (Working<Work>::of(right.min) < Working<Work>::of(left.min)) left.min = right.min;
  left.nan += right.nan;
  left.pos_inf += right.pos_inf;
  left.neg_inf += right.neg_inf;
  left.zero += right.zero;
  left.exclusive_or ^= right.exclusive_or;
}

/// One lane's statistics of a chunk, in registers; a chunk has fewer than 2^32 elements (plan.cpp).
template <class Element>
struct LaneSums {
  using Work = typename Element::Work;
  double sum = 0;
  double squares = 0;
  Work max = Working<Work>::lowest();
  Work min = Working<Work>::highest();
  u32 nan = 0;
  u32 pos_inf = 0;
  u32 neg_inf = 0;
  u32 zero = 0;

  MSPROBE_DEVICE void take(u64 bits) {
    const Work value = Element::value(bits);
    const double wide = static_cast<double>(value);
    sum += wide;
    squares += wide * wide;
    if (value > max) max = value;
    if (value < min) min = value;
    if (value == 0) ++zero;
    if constexpr (Element::kFloating) {
      if (value != value) ++nan;  // NOLINT: only NaN differs from itself
      if (value == Working<Work>::highest()) ++pos_inf;
      if (value == Working<Work>::lowest()) ++neg_inf;
    }
  }

  MSPROBE_DEVICE void store(TensorTally& tally) const {
    tally.sum = sum;
    tally.squares = squares;
    tally.max = bits_of(max);
    tally.min = bits_of(min);
    tally.nan = nan;
    tally.pos_inf = pos_inf;
    tally.neg_inf = neg_inf;
    tally.zero = zero;
  }
};

MSPROBE_DEVICE u32 by_bytes(const u32 (&table)[4][256], u32 value) {
  return table[0][value & 0xFF] ^ table[1][(value >> 8) & 0xFF] ^ table[2][(value >> 16) & 0xFF] ^
         table[3][value >> 24];
}

/// The remainder after the data of `crc`, the other lanes' groups as zeros, and these 16 bytes.
MSPROBE_APART u32 next_remainder(const Shared& shared, u32 crc, const Words& words) {
  crc = by_bytes(shared.skip, crc);
  MSPROBE_UNROLL
  for (u32 part = 0; part < 4; ++part)
    crc = by_bytes(shared.step, crc ^ static_cast<u32>(words.word[part / 2] >> (32 * (part % 2))));
  return crc;
}

/// Changes the bytes of `n` elements by `flip`.
MSPROBE_DEVICE void flip_signs(Words& words, u64 flip, u32 bytes) {
  if (bytes >= 8) words.word[0] ^= flip;
  if (bytes >= 16) words.word[1] ^= flip;
  if (bytes % 8 == 0) return;
  const u64 rest = flip & ((1ULL << (8 * (bytes % 8))) - 1);
  if (bytes < 8) {
    words.word[0] ^= rest;
  } else {
    words.word[1] ^= rest;
  }
}

/// Measures the groups of one lane in a chunk.
template <class Element>
MSPROBE_DEVICE void measure_lane(const Shared& shared, u32 chunk, u32 lane, TensorTally& tally) {
  constexpr u32 kInGroup = kGroup / Element::kSize;
  const Job& job = shared.job;
  const u64 groups = (job.count + kInGroup - 1) / kInGroup;
  const u64 all_rows = (groups + kLanes - 1) / kLanes;
  const u64 begin = static_cast<u64>(chunk) * job.chunk_rows;
  const u64 end = begin + job.chunk_rows < all_rows ? begin + job.chunk_rows : all_rows;
  LaneSums<Element> sums;
  u64 exclusive_or = 0;
  u32 crc = 0;
  MSPROBE_LOOP
  for (u64 row = begin; row < end; ++row) {
    const u64 first = (row * kLanes + lane) * kInGroup;
    const u32 n = first >= job.count              ? 0
                  : job.count - first >= kInGroup ? kInGroup
                                                  : static_cast<u32>(job.count - first);
    // Contiguous elements are aligned.
    Words words = job.contiguous != 0 && n == kInGroup
                      ? *reinterpret_cast<const Words*>(job.data + first * Element::kSize)
                      : gather(job, Element::kSize, first, n);
    if ((job.tasks & kStatistics) != 0) {
      if (n == kInGroup) {
        MSPROBE_UNROLL
        for (u32 e = 0; e < kInGroup; ++e) sums.take(bits_in<Element>(words, e));
      } else {
        MSPROBE_LOOP
        for (u32 e = 0; e < n; ++e) sums.take(bits_in<Element>(words, e));
      }
    }
    if ((job.tasks & (kCrc | kXor)) == 0) continue;
    if (job.flip != 0) flip_signs(words, job.flip, n * Element::kSize);
    exclusive_or ^= words.word[0] ^ words.word[1];
    if ((job.tasks & kCrc) != 0) crc = next_remainder(shared, crc, words);
  }
  sums.store(tally);
  tally.exclusive_or = exclusive_or;
  tally.crc = crc;
}

/// Combines all lanes into the first. Remainders use shared.fold, if there are any.
template <typename Work, class Place>
MSPROBE_DEVICE void combine_lanes(Shared& shared, Place& place, bool remainders) {
  u32 level = 0;
  MSPROBE_LOOP
  for (u32 half = kLanes / 2; half > 0; half /= 2, ++level) {
    MSPROBE_LOOP
    for (u32 lane = place.thread; lane < half; lane += place.threads) {
      TensorTally& left = shared.lane[lane];
      const TensorTally& right = shared.lane[lane + half];
      combine<Work>(left, right);
      if (remainders) left.crc = multiply_by(shared.fold[level], left.crc) ^ right.crc;
    }
    place.barrier();
  }
}

/// Prepares combine_lanes(). powers[k]: the factor for the lanes when 128 >> k are on each side.
template <class Place>
MSPROBE_DEVICE void set_fold(Shared& shared, Place& place, const u32* powers) {
  MSPROBE_LOOP
  for (u32 at = place.thread; at < kLevels * 32; at += place.threads) {
    u32 value = powers[at / 32];
    MSPROBE_LOOP
    for (u32 i = 0; i < at % 32; ++i) value = times_x(value);
    shared.fold[at / 32][at % 32] = value;
  }
}

/// Puts the remainders of all chunks but the last into lanes: lane L has those of chunks L + 1, L + 257, ...
/// from the front, as if chunks of zeros filled up the front to a multiple of 256.
template <class Place>
MSPROBE_APART void spread_remainders(Shared& shared, Place& place, const TensorTally* partials) {
  const Job& job = shared.job;
  u32 powers[kLevels];
  u32 power = job.chunk_power;  // becomes that of 256 chunks
  MSPROBE_LOOP
  for (u32 k = 0; k < kLevels; ++k) {
    powers[kLevels - 1 - k] = power;
    power = multiply(power, power);
  }
  set_fold(shared, place, powers);
  const u32 whole = job.chunks - 1;
  const u32 rounds = (whole + kLanes - 1) / kLanes;
  const u32 front = rounds * kLanes - whole;
  MSPROBE_LOOP
  for (u32 lane = place.thread; lane < kLanes; lane += place.threads) {
    u32 crc = 0;
    MSPROBE_LOOP
    for (u32 number = lane; number < rounds * kLanes; number += kLanes) {
      if (crc != 0) crc = multiply(crc, power);
      if (number >= front) crc ^= partials[number - front].crc;
    }
    shared.lane[lane].crc = crc;
  }
}

/// Combines the results of the lanes in a chunk. The block that ends the last chunk of a job combines all
/// chunks.
template <typename Work, class Place>
MSPROBE_APART void finish_chunk(const KernelLaunch& launch, Shared& shared, Place& place, u32 chunk) {
  const Job& job = shared.job;
  const bool remainders = (job.tasks & kCrc) != 0;
  place.barrier();
  combine_lanes<Work>(shared, place, remainders);
  TensorTally* partials = launch.partials + static_cast<u64>(shared.index) * kMostChunks;
  if (place.thread == 0) {
    partials[chunk] = shared.lane[0];
    place.fence();
    u32* done = launch.done + shared.index;
    shared.last = place.add_one(done) + 1 == job.chunks ? 1 : 0;
    if (shared.last != 0) *done = 0;
    place.fence();
  }
  place.barrier();
  if (shared.last == 0) return;
  MSPROBE_LOOP
  for (u32 lane = place.thread; lane < kLanes; lane += place.threads) {
    TensorTally tally = empty_tally<Work>();
    MSPROBE_LOOP
    for (u32 number = lane; number < job.chunks; number += kLanes) combine<Work>(tally, partials[number]);
    shared.lane[lane] = tally;
  }
  if (remainders) spread_remainders(shared, place, partials);
  place.barrier();
  combine_lanes<Work>(shared, place, remainders);
  if (remainders) set_fold(shared, place, launch.fold);  // restores it for the next chunk of this block
  if (place.thread == 0) {
    TensorTally& all = shared.lane[0];
    if (remainders) {
      const u32 before = all.crc == 0 ? 0 : multiply(all.crc, job.last_power);
      all.crc = before ^ partials[job.chunks - 1].crc;
    }
    launch.rows[job.row] = all;
  }
}

template <class Element, class Place>
MSPROBE_DEVICE void measure_chunk(const KernelLaunch& launch, Shared& shared, Place& place, u32 chunk) {
  MSPROBE_LOOP
  for (u32 lane = place.thread; lane < kLanes; lane += place.threads)
    measure_lane<Element>(shared, chunk, lane, shared.lane[lane]);
  finish_chunk<typename Element::Work>(launch, shared, place, chunk);
}

template <class Place>
MSPROBE_APART void make_tables(const KernelLaunch& launch, Shared& shared, Place& place) {
  set_fold(shared, place, launch.fold);
  for (u32 byte = place.thread; byte < 256; byte += place.threads) {
    u32 remainder = byte;
    MSPROBE_LOOP
    for (u32 k = 0; k < 4; ++k) {
      for (u32 bit = 0; bit < 8; ++bit) remainder = times_x(remainder);
      // The lowest of four bytes comes first, so three more follow it.
      shared.step[3 - k][byte] = remainder;
      shared.skip[k][byte] = multiply(byte << (8 * k), launch.skip);
    }
  }
  place.barrier();
}

/// The work of one thread.
template <class Place>
MSPROBE_DEVICE void measure(const KernelLaunch& launch, Shared& shared, Place place) {
  if ((launch.tasks & kCrc) != 0) make_tables(launch, shared, place);
  MSPROBE_LOOP
  for (u32 number = place.block; number < launch.chunks; number += place.blocks) {
    place.barrier();
    if (place.thread == 0) {
      u32 index = 0;
      while (index + 1 < launch.jobs && launch.job[index + 1].first_chunk <= number) ++index;
      shared.index = index;
      shared.job = launch.job[index];
    }
    place.barrier();
    const u32 chunk = number - shared.job.first_chunk;
    switch (shared.job.type) {
      case kFloat64:
        measure_chunk<Double>(launch, shared, place, chunk);
        break;
      case kFloat32:
        measure_chunk<Single>(launch, shared, place, chunk);
        break;
      case kFloat16:
        measure_chunk<Half>(launch, shared, place, chunk);
        break;
      case kBfloat16:
        measure_chunk<Bfloat16>(launch, shared, place, chunk);
        break;
      case kFloat8E4m3fn:
        measure_chunk<E4m3fn>(launch, shared, place, chunk);
        break;
      case kFloat8E5m2:
        measure_chunk<E5m2>(launch, shared, place, chunk);
        break;
      case kFloat8E4m3fnuz:
        measure_chunk<E4m3fnuz>(launch, shared, place, chunk);
        break;
      case kFloat8E5m2fnuz:
        measure_chunk<E5m2fnuz>(launch, shared, place, chunk);
        break;
      case kFloat8E8m0fnu:
        measure_chunk<E8m0fnu>(launch, shared, place, chunk);
        break;
      case kInt64:
        measure_chunk<Integer<i64>>(launch, shared, place, chunk);
        break;
      case kInt32:
        measure_chunk<Integer<int>>(launch, shared, place, chunk);
        break;
      case kInt16:
        measure_chunk<Integer<short>>(launch, shared, place, chunk);
        break;
      case kInt8:
        measure_chunk<Integer<signed char>>(launch, shared, place, chunk);
        break;
      case kUint64:
        measure_chunk<Integer<u64, u64>>(launch, shared, place, chunk);
        break;
      case kUint32:
        measure_chunk<Integer<u32>>(launch, shared, place, chunk);
        break;
      case kUint16:
        measure_chunk<Integer<unsigned short>>(launch, shared, place, chunk);
        break;
      case kUint8:
        measure_chunk<Integer<u8>>(launch, shared, place, chunk);
        break;
      case kBool:
        measure_chunk<Integer<bool>>(launch, shared, place, chunk);
        break;
      case kComplex32:
        measure_chunk<Complex<Half>>(launch, shared, place, chunk);
        break;
      case kComplex64:
        measure_chunk<Complex<Single>>(launch, shared, place, chunk);
        break;
      default:
        break;
    }
  }
}

}  // namespace msprobe::gpu

#ifdef MSPROBE_ON_GPU
namespace msprobe::gpu {

struct ThreadPlace {
  u32 thread;
  u32 threads;
  u32 block;
  u32 blocks;
  __device__ void barrier() { __syncthreads(); }
  __device__ void fence() { __threadfence(); }
  __device__ u32 add_one(u32* number) { return atomicAdd(number, 1U); }
};

}  // namespace msprobe::gpu

// The parameter is read in place, because a copy for each thread would take 4096 bytes. CUDA has an attribute
// for this; HIP's compilers offer no other way.
#if defined(__HIPCC_RTC__)
extern "C" __global__ void __launch_bounds__(256) msprobe_measure(const msprobe::gpu::KernelLaunch) {
  const auto& launch = *(const msprobe::gpu::KernelLaunch*)__builtin_amdgcn_kernarg_segment_ptr();
#else
#if __CUDA_ARCH__ >= 700 && \
    (__CUDACC_VER_MAJOR__ >= 12 || (__CUDACC_VER_MAJOR__ == 11 && __CUDACC_VER_MINOR__ >= 7))
#define MSPROBE_PARAMETER const __grid_constant__
#else
#define MSPROBE_PARAMETER const
#endif
extern "C" __global__ void __launch_bounds__(256)
    msprobe_measure(MSPROBE_PARAMETER msprobe::gpu::KernelLaunch launch) {
#endif
  __shared__ msprobe::gpu::Shared shared;
  msprobe::gpu::measure(launch, shared,
                        msprobe::gpu::ThreadPlace{threadIdx.x, blockDim.x, blockIdx.x, gridDim.x});
}
#endif
