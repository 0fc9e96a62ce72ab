// SPDX-License-Identifier: Apache-2.0
// The configuration of the training monitor, in both layouts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "collector/monitor/settings.hpp"
#include "fuzz_target.hpp"
#include "series/setting_error.hpp"
#include "support/error.hpp"

namespace collector = msprobe::collector;

namespace {

void check(const collector::monitor::Settings& settings) {
  // The engine relies on this.
  const bool usable = settings.window.interval > 0 && settings.steps_per_file > 0 && settings.digits >= 0 &&
                      settings.digits <= 20 && settings.effective.is_object();
  if (!usable) std::abort();
  (void)settings.window.holds(std::numeric_limits<std::uint64_t>::max());
  settings.effective.dump(-1, ' ', true);
}

}  // namespace

FUZZ_TARGET(monitor_config)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const int layout : {1, 2}) {
    try {
      const collector::monitor::Json configuration = collector::monitor::parse_configuration(text, "t.json");
      check(layout == 1 ? collector::monitor::read_settings(configuration)
                        : collector::monitor::read_settings_v2(configuration, ""));
    } catch (const msprobe::FormatError&) {
    } catch (const msprobe::series::SettingError&) {
    }
  }
}
