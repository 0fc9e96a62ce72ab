// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/unexplained_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::State;
using pairing::kNone;

}  // namespace

bool UnexplainedRule::examine(const EntryPair& entry) {
  const bool evidence =
      walk_.fault_order != UINT64_MAX || entry.touched || (entry.best && entry.best->is_evidence());
  const bool lost = walk_.drift && walk_.before >= kHalf;
  if (evidence || lost || walk_.flipped || history_.flipped) return false;
  // Parameters that were trained by noisy gradients are noise, whether or not they are recorded.
  const double limit =
      walk_.threshold *
      (std::max({walk_.any_error(), history_.noise, walk_.unasked_error()}) + kFew * entry.u);
  bool found = false;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (!item.is_tensor || errors_.golden_item[i] == kNone || !(walk_.e_of(i) > 0)) continue;
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    const bool takes = item.state == State::input && from != kNone && walk_.unexplained[from];
    const bool judged = !std::isnan(walk_.out.explained[i]) && !found;
    if (!takes && (judged || walk_.e_of(i) <= limit)) continue;
    if (walk_.is_made_good(entry)) {
      walk_.leave_out(entry.target, limit);
      return false;
    }
    walk_.unexplained[i] = true;
    found = true;
    if (std::exchange(any_, true)) continue;
    Finding first = walk_.finding(entry, Kind::unexplained, Rule::introduced, 0);
    first.confidence = Confidence::hint;
    first.item = i;
    first.place = pairing::place_text(target_, item);
    first.text = fmt::format("{} has error {}, all that was judged before it at most {}", first.place,
                             error_text(walk_.e_of(i)), error_text(walk_.any_error()));
    walk_.name_places(first, entry.target, entry.golden);
    walk_.keep(std::move(first), walk_.before);
  }
  return found;
}

}  // namespace msprobe::diagnosis
