// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Begins the entry of a target: `FUZZ_TARGET(zip)(const std::uint8_t* data, std::size_t size) {...}`. An
/// engine calls a function of one fixed name in each program; the program that replays all targets needs a
/// name for each.
#ifdef FUZZ_ENGINE
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#else
#define FUZZ_TARGET(name) extern "C" int fuzz_##name
#endif
