// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/structure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "diagnosis/limits.hpp"
#include "measuring/measures.hpp"
#include "pairing/alignment.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::RequiresGrad;
using dump::Side;
using dump::State;
using measuring::elements_of;
using measuring::number_of;
using measuring::same_dtype;
using measuring::unit_roundoff;
using pairing::kNone;
using pairing::place_text;

/// A plain argument as it was written: `2.5`, `'bilinear'`, `[2, 3]`.
std::string argument_text(const Side& side, const Item& item) {
  const std::string_view dtype = side.text(item.dtype);
  if (dtype == "None" || dtype == "<class 'NoneType'>") return "None";
  if (dtype == "torch.Size" || dtype == "slice") return std::string(side.text(item.shape));
  const std::string value = dump::to_text(item.statistics[dump::kMax], side.pool);
  return dtype == "<class 'str'>" ? python_repr(std::string_view(value)) : value;
}

/// Objects whose text says nothing about the call: a group, a reduce operation with its address.
bool is_opaque(std::string_view dtype) {
  return dtype.find("ProcessGroup") != std::string_view::npos ||
         dtype.find("ReduceOp") != std::string_view::npos;
}

bool holds_address(std::string_view text) {
  return text.find("0x") != std::string_view::npos;
}

/// Objects that the Python tool leaves out when they are positional arguments: dtypes and devices.
bool may_be_unrecorded(std::string_view value) {
  if (value.starts_with("torch.")) return true;
  const std::string_view kind = value.substr(0, value.find(':'));
  return kind == "cpu" || kind == "cuda" || kind == "npu" || kind == "meta";
}

/// Whether a number was written in the text of a program, and not computed.
bool is_written(double value) {
  const std::string text = fmt::format("{:.{}g}", value, kWrittenDigits);
  double back = 0;
  return std::from_chars(text.data(), text.data() + text.size(), back).ec == std::errc() && back == value;
}

class CallComparison {
 public:
  CallComparison(const Side& target, const Side& golden, const std::vector<std::uint32_t>& golden_item,
                 double rounding, const DtypeSetting* setting, const LossScale* scale)
      : target_(target),
        golden_(golden),
        golden_item_(golden_item),
        rounding_(rounding),
        setting_(setting),
        scale_(scale),
        other_framework_(pairing::of_other_frameworks(target, golden)) {}

  CalledOtherwise run(const dump::Api& ours, const dump::Api& theirs) {
    std::vector<std::uint32_t> alone;  // arguments
    std::vector<std::uint32_t> taken;  // of golden
    for (const std::uint32_t i : ours.items()) {
      const Item& item = target_.items[i];
      if (golden_item_[i] == kNone) {
        if (item.state == State::input && !is_nothing(target_, item)) alone.push_back(i);
        continue;
      }
      taken.push_back(golden_item_[i]);
      compare(i, item, golden_.items[golden_item_[i]]);
    }
    if (other_framework_) return std::move(out_);
    compare_alone(alone, golden_alone(theirs, taken));
    compare_parameters(ours, theirs, taken);
    return std::move(out_);
  }

 private:
  /// Looks for a parameter that the module has on one side alone, where both sides record parameters.
  void compare_parameters(const dump::Api& ours, const dump::Api& theirs,
                          const std::vector<std::uint32_t>& taken) {
    if (out_.first) return;
    const auto has = [](const Side& side, const dump::Api& api, const auto& counts) {
      for (const std::uint32_t i : api.items()) {
        if (side.items[i].state == State::parameters && counts(i)) return i;
      }
      return kNone;
    };
    const auto any = [](std::uint32_t) { return true; };
    if (has(target_, ours, any) == kNone || has(golden_, theirs, any) == kNone) return;
    const std::uint32_t alone = has(target_, ours, [&](std::uint32_t i) { return golden_item_[i] == kNone; });
    const std::uint32_t golden_alone = has(golden_, theirs, [&](std::uint32_t i) {
      return std::find(taken.begin(), taken.end(), i) == taken.end();
    });
    if ((alone == kNone) == (golden_alone == kNone)) return;
    const Side& side = alone == kNone ? golden_ : target_;
    const Item& item = side.items[alone == kNone ? golden_alone : alone];
    note(Kind::argument, alone, place_text(side, item), "not there", "not there");
    (alone == kNone ? out_.first->golden : out_.first->target) = "there";
    out_.first->parameter = pairing::name_in_model(side, item);
  }

  void note(Kind kind, std::uint32_t item, std::string place, std::string target, std::string golden) {
    if (out_.first && rank(out_.first->kind) <= rank(kind)) return;
    out_.first = StructuralDifference{kind, item, std::move(place), std::move(target), std::move(golden)};
  }
  bool is_setting(std::string_view target, std::string_view golden) const {
    return setting_ != nullptr && setting_->is(target, golden);
  }
  /// The kind of difference that says most about the cause comes first.
  static int rank(Kind kind) {
    switch (kind) {
      case Kind::argument:
        return 0;
      case Kind::dtype:
        return 1;
      case Kind::shape:
        return 2;
      default:
        return 3;
    }
  }

  /// Whether the other side may have left the argument out: None, the usual default, and some objects.
  static bool is_nothing(const Side& side, const Item& item) {
    if (item.is_tensor) return false;
    return argument_text(side, item) == "None" ||
           may_be_unrecorded(dump::to_text(item.statistics[dump::kMax], side.pool));
  }

  std::vector<std::uint32_t> golden_alone(const dump::Api& theirs, std::vector<std::uint32_t>& taken) const {
    std::vector<std::uint32_t> alone;
    if (taken.size() == theirs.count) return alone;
    std::sort(taken.begin(), taken.end());
    for (const std::uint32_t i : theirs.items()) {
      const Item& item = golden_.items[i];
      if (item.state != State::input || std::binary_search(taken.begin(), taken.end(), i)) continue;
      if (!is_nothing(golden_, item)) alone.push_back(i);
    }
    return alone;
  }

  static std::string text_of(const Side& side, const Item& item) {
    return item.is_tensor ? "a tensor" : argument_text(side, item);
  }

  /// Compares arguments without a partner. A value that one side gives by name and the other by position is
  /// the same. Where that explains all arguments of a side, the remaining ones of the other may be defaults.
  void compare_alone(std::vector<std::uint32_t> ours, std::vector<std::uint32_t> theirs) {
    const bool both = !ours.empty() && !theirs.empty();
    std::erase_if(ours, [&](std::uint32_t i) {
      const std::string text = text_of(target_, target_.items[i]);
      const auto same = std::find_if(theirs.begin(), theirs.end(), [&](std::uint32_t other) {
        return text_of(golden_, golden_.items[other]) == text;
      });
      if (same == theirs.end()) return false;
      theirs.erase(same);
      return true;
    });
    if (both && (ours.empty() || theirs.empty())) return;
    for (const std::uint32_t i : ours)
      note(Kind::argument, i, place_text(target_, target_.items[i]), text_of(target_, target_.items[i]),
           "not given");
    for (const std::uint32_t i : theirs)
      note(Kind::argument, kNone, place_text(golden_, golden_.items[i]), "not given",
           text_of(golden_, golden_.items[i]));
  }

  /// Compares outputs only: arguments of another framework have other names, orders and types.
  void compare_result(std::uint32_t index, const Item& item, const Item& partner) {
    if (!item.is_tensor || !partner.is_tensor || item.state != State::output) return;
    const std::string_view dtype = target_.text(item.dtype);
    const std::string_view golden_dtype = golden_.text(partner.dtype);
    const bool floating = unit_roundoff(dtype) > 0 && unit_roundoff(golden_dtype) > 0;
    if (floating && !same_dtype(dtype, golden_dtype) && !is_setting(dtype, golden_dtype))
      note(Kind::dtype, index, place_text(target_, item), std::string(dtype), std::string(golden_dtype));
    const std::string_view shape = target_.text(item.shape);
    const std::string_view golden_shape = golden_.text(partner.shape);
    if (elements_of(shape) != elements_of(golden_shape))
      note(Kind::shape, index, place_text(target_, item), std::string(shape), std::string(golden_shape));
  }

  void compare(std::uint32_t index, const Item& item, const Item& partner) {
    if (other_framework_) {
      compare_result(index, item, partner);
      return;
    }
    if (item.is_tensor != partner.is_tensor) {
      note(Kind::argument, index, place_text(target_, item),
           item.is_tensor ? "a tensor" : argument_text(target_, item),
           partner.is_tensor ? "a tensor" : argument_text(golden_, partner));
      return;
    }
    if (!item.is_tensor) {
      if (item.state == State::input) compare_arguments(index, item, partner);
      return;
    }
    const std::string_view dtype = target_.text(item.dtype);
    const std::string_view golden_dtype = golden_.text(partner.dtype);
    if (!same_dtype(dtype, golden_dtype) && !is_setting(dtype, golden_dtype))
      note(Kind::dtype, index, place_text(target_, item), std::string(dtype), std::string(golden_dtype));
    const std::string_view shape = target_.text(item.shape);
    const std::string_view golden_shape = golden_.text(partner.shape);
    if (shape != golden_shape)
      note(Kind::shape, index, place_text(target_, item), std::string(shape), std::string(golden_shape));
    const auto known = [](const Item& each) { return each.requires_grad != RequiresGrad::unknown; };
    if (known(item) && known(partner) && item.requires_grad != partner.requires_grad) {
      const auto text = [](const Item& each) {
        return each.requires_grad == RequiresGrad::yes ? "True" : "False";
      };
      note(Kind::requires_grad, index, place_text(target_, item), text(item), text(partner));
    }
  }

  void compare_arguments(std::uint32_t index, const Item& item, const Item& partner) {
    if (is_opaque(target_.text(item.dtype)) || is_opaque(golden_.text(partner.dtype))) return;
    const dump::RecordedValue value = item.statistics[dump::kMax];
    const dump::RecordedValue other = partner.statistics[dump::kMax];
    const bool number = value.kind == dump::ValueKind::integer || value.kind == dump::ValueKind::real;
    if (number && value.kind == other.kind && value.integer == other.integer) return;
    const std::string ours = argument_text(target_, item);
    const std::string theirs = argument_text(golden_, partner);
    if (ours == theirs || (holds_address(ours) && holds_address(theirs))) return;
    const double a = number_of(target_, item, dump::kMax);
    const double b = number_of(golden_, partner, dump::kMax);
    const double largest = std::max(std::abs(a), std::abs(b));
    if (std::isfinite(largest)) {
      if (a == b) return;  // 1 and 1.0
      const bool extremes = setting_ != nullptr && a * b > 0 && is_extreme(a, setting_->target) &&
                            is_extreme(b, setting_->golden);
      if (extremes) return;  // both fill a mask, each in the type of its run
      if (scale_ != nullptr && scale_->explains(a, b, kFew * measuring::kSingleRoundoff)) return;
      const double relative = std::abs(a - b) / largest;
      const bool whole = a == std::floor(a) && b == std::floor(b);
      const bool setting = is_written(a) && is_written(b);
      if (!whole && !setting && relative <= rounding_) {
        out_.scalar_error = std::max(out_.scalar_error, relative);
        if (!out_.excused)
          out_.excused = StructuralDifference{Kind::argument, index, place_text(target_, item), ours, theirs};
        return;
      }
    }
    note(Kind::argument, index, place_text(target_, item), ours, theirs);
    if (out_.first->item != index || out_.first->kind != Kind::argument) return;
    const auto is_plain = [&](const Side& side, const Item& each, double as_number) {
      const std::string_view dtype = side.text(each.dtype);
      return dtype == "<class 'str'>" || dtype == "<class 'bool'>" || dtype == "<class 'int'>" ||
             (dtype == "<class 'float'>" && is_written(as_number));
    };
    out_.first->setting = is_plain(target_, item, a) && is_plain(golden_, partner, b);
  }

  const Side& target_;
  const Side& golden_;
  const std::vector<std::uint32_t>& golden_item_;
  double rounding_;
  const DtypeSetting* setting_;
  const LossScale* scale_;
  bool other_framework_;
  CalledOtherwise out_;
};

}  // namespace

CalledOtherwise called_otherwise(const Side& target, std::uint32_t target_api, const Side& golden,
                                 std::uint32_t golden_api, const std::vector<std::uint32_t>& golden_item,
                                 double rounding, const DtypeSetting* setting, const LossScale* scale) {
  return CallComparison(target, golden, golden_item, rounding, setting, scale)
      .run(target.apis[target_api], golden.apis[golden_api]);
}

}  // namespace msprobe::diagnosis
