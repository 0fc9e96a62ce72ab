// SPDX-License-Identifier: Apache-2.0
// Numbers of the zip format (PKWARE's APPNOTE.TXT 4.3 and 4.4) that reader and writer share.
#pragma once

#include <cstdint>

namespace msprobe::archive {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;
inline constexpr std::uint32_t kEnd64Signature = 0x06064b50;
inline constexpr std::uint32_t kLocator64Signature = 0x07064b50;
inline constexpr std::uint64_t kLocalSize = 30;
inline constexpr std::uint64_t kCentralSize = 46;
inline constexpr std::uint64_t kEndSize = 22;
inline constexpr std::uint64_t kEnd64Size = 56;
inline constexpr std::uint64_t kLocator64Size = 20;
inline constexpr std::uint64_t kLongestComment = 0xffff;
inline constexpr std::uint16_t kZip64Extra = 1;
inline constexpr std::uint16_t kMax16 = 0xffff;
inline constexpr std::uint32_t kMax32 = 0xffffffff;

/// A flag: the sizes are not in the local header but in a data descriptor after the member.
inline constexpr std::uint16_t kSizesFollow = 1U << 3;

}  // namespace msprobe::archive
