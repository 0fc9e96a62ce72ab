// SPDX-License-Identifier: Apache-2.0
// Trainings that send their messages and tensors over the network.
#pragma once

#include <cstdint>
#include <string>

#include "precheck/acc_check/online_stream.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

/// The address at which the command listens to trainings.
struct ListenAddress {
  std::string host;        // empty: all addresses of this machine
  std::uint16_t port = 0;  // 0: any that is free
  std::string tls;         // the folder of certificates; empty: trainings of this machine alone, without TLS
};

/// Reads `host:port`, `[::1]:port` or `:port`, which means all addresses. Throws UsageError for other texts.
ListenAddress read_listen_address(const std::string& text);

/// Judges the calls that come until every training that has begun has ended. Error if the command cannot
/// listen; at an interruption it reports its findings, and throws Interrupted.
OnlineCounts judge_calls_of_network(const ListenAddress& address, const OnlineSettings& settings,
                                    const Standards& standards, bool color);

}  // namespace msprobe::precheck
