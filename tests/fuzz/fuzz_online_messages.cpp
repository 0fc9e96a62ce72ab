// SPDX-License-Identifier: Apache-2.0
// Messages from a running training to the process that judges it: one per line, the first one with the
// settings.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "dump/member_stream.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "precheck/acc_check/online_messages.hpp"
#include "precheck/acc_check/online_tensors.hpp"
#include "support/error.hpp"

namespace msprobe::precheck {
namespace {

void take_message(std::string_view line) {
  OnlineMessage message = read_online_message(line);
  const bool has_entry = message.kind == OnlineMessage::MessageKind::call ||
                         message.kind == OnlineMessage::MessageKind::backward;
  if (!has_entry) return;
  dump::read_json(message.entry, "an entry");
  ReceivedTensors tensors;
  tensors.add(message.json, message.tensors, memory_source(std::string(4096, '1'), "tensors"));
  for (const auto& [name, stored] : tensors.all()) {
    if (name.find('/') != std::string::npos) throw std::logic_error("a tensor that leads out of its folder");
    if (stored.storage->size() > 4096) throw std::logic_error("a tensor beyond its file");
  }
}

}  // namespace

FUZZ_TARGET(online_messages)(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    try {
      if (is_first) {
        OnlineStart start;
        read_online_start(line, start);
      } else {
        take_message(line);
      }
    } catch (const Error&) {  // refused, which is fine
    }
  }
}

}  // namespace msprobe::precheck
