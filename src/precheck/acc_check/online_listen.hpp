// SPDX-License-Identifier: Apache-2.0
// Trainings that send their messages and tensors over the network.
#pragma once

#include <cstdint>
#include <string>

#include "precheck/acc_check/online_stream.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

/// Where they are listened to.
struct ListenAddress {
  std::string host;        // empty: all addresses of this machine
  std::uint16_t port = 0;  // 0: any that is free
  std::string tls;         // the folder of certificates; empty: trainings of this machine alone, without TLS
};

/// `host:port`, `[::1]:port`, `:port`. UsageError.
ListenAddress read_listen_address(const std::string& text);

/// Judges what comes until each training has ended that has begun. Error if it cannot be listened;
/// at an interruption it tells what it has found, and throws Interrupted.
OnlineCounts judge_calls_of_network(const ListenAddress& address, const OnlineSettings& settings,
                                    const Standards& standards, bool color);

}  // namespace msprobe::precheck
