// SPDX-License-Identifier: Apache-2.0
#include "pack/yaml.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "support/ascii.hpp"
#include "support/text.hpp"
#include "support/yaml_document.hpp"

namespace msprobe::pack {
namespace {

/// Replaces aliases and merge keys by the nodes that they refer to, within the limits.
class Expander {
 public:
  Expander(const YamlDocument& document, const YamlLimits& limits) : document_(document), limits_(limits) {}

  PackValue run() { return document_.empty() ? PackValue() : expand(document_.root(), 0); }

 private:
  using Kind = YamlDocument::YamlKind;
  using Node = YamlDocument::YamlNode;

  static bool is_merge(const Node& node) { return node.plain && node.text == "<<"; }

  PackValue scalar(const Node& node) const {
    if (node.plain) return resolve_yaml_scalar(node.text);
    if (node.tag.empty() || node.tag == "str") return PackValue::of_text(node.text);
    if (node.tag == "null") return {};
    const PackValue value = resolve_yaml_scalar(node.text);
    const bool fits = (node.tag == "int" && value.is(PackValue::Type::integer)) ||
                      (node.tag == "float" && value.is_number()) ||
                      (node.tag == "bool" && value.is(PackValue::Type::boolean)) ||
                      (node.tag == "timestamp" && value.is(PackValue::Type::null));
    if (!fits) document_.fail(node, "the tag " + display(node.tag) + " is not supported here");
    return node.tag == "float" ? PackValue::of(value.number()) : value;
  }

  void spend(const Node& node, std::uint64_t text) {
    ++expanded_;
    text_ += text;
    if (expanded_ > limits_.max_expanded || text_ > limits_.max_text)
      document_.fail(node, "refused: aliases expand to too many values");
  }

  PackValue expand(const Node& node, int depth) {
    if (depth > limits_.max_depth) document_.fail(node, "refused: nested too deeply");
    spend(node, node.text.size());
    switch (node.kind) {
      case Kind::scalar:
        return scalar(node);
      case Kind::list: {
        PackValue list = PackValue::list();
        for (std::size_t i = 0; i < document_.size(node); ++i)
          list.push(expand(document_.child(node, i), depth + 1));
        return list;
      }
      case Kind::map:
        break;
    }
    PackValue map = PackValue::map();
    append_pairs(map, node, depth);
    map.settle();
    return map;
  }

  /// Adds the merged maps first and then the map's own pairs, because later ones win.
  void append_pairs(PackValue& map, const Node& node, int depth) {
    if (depth > limits_.max_depth) document_.fail(node, "refused: nested too deeply");
    for (std::size_t i = 0; i + 1 < document_.size(node); i += 2) {
      if (!is_merge(document_.child(node, i))) continue;
      const Node& source = document_.child(node, i + 1);
      spend(source, 0);
      if (source.kind == Kind::map) {
        append_pairs(map, source, depth + 1);
      } else if (source.kind == Kind::list) {
        for (std::size_t k = document_.size(source); k-- > 0;) {
          const Node& part = document_.child(source, k);
          if (part.kind != Kind::map) document_.fail(part, "only maps can be merged");
          spend(part, 0);
          append_pairs(map, part, depth + 1);
        }
      } else {
        document_.fail(source, "only maps can be merged");
      }
    }
    for (std::size_t i = 0; i + 1 < document_.size(node); i += 2) {
      const Node& key = document_.child(node, i);
      if (is_merge(key)) continue;
      if (key.kind != Kind::scalar) document_.fail(key, "a list or map cannot be a name");
      spend(key, key.text.size());
      map.push(python_str(scalar(key)), expand(document_.child(node, i + 1), depth + 1));
    }
  }

  const YamlDocument& document_;
  const YamlLimits& limits_;
  std::uint64_t expanded_ = 0;
  std::uint64_t text_ = 0;
};

constexpr std::size_t kMostDigits = 4300;  // Python refuses to convert longer numbers

// Plain scalars of YAML 1.1 follow the patterns of https://yaml.org/type/ as PyYAML implements them.

/// Matches patterns at the front of a text and removes them.
class PatternMatcher {
 public:
  explicit PatternMatcher(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  bool one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::size_t many(std::string_view characters) {
    const std::size_t count = std::min(rest_.find_first_not_of(characters), rest_.size());
    rest_.remove_prefix(count);
    return count;
  }
  /// From `least` to `most` digits.
  bool digits(std::size_t least, std::size_t most) {
    std::size_t count = 0;
    while (count < most && count < rest_.size() && is_digit(rest_[count])) ++count;
    rest_.remove_prefix(count);
    return count >= least;
  }
  /// Matches `:5` or `:59`, at least once.
  bool sixtieths() {
    bool any = false;
    while (rest_.size() > 1 && rest_[0] == ':' && is_digit(rest_[1])) {
      const bool two = rest_.size() > 2 && is_digit(rest_[2]);
      if (two && rest_[1] > '5') return false;
      rest_.remove_prefix(two ? 3 : 2);
      any = true;
    }
    return any;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kDigitsOrLine = "0123456789_";

/// A whole number of any size.
class Decimal {
 public:
  void multiply_add(std::uint32_t factor, std::uint32_t summand) {
    std::uint64_t carry = summand;
    for (std::uint32_t& limb : limbs_) {
      carry += std::uint64_t{limb} * factor;
      limb = static_cast<std::uint32_t>(carry % kBase);
      carry /= kBase;
    }
    if (carry != 0) limbs_.push_back(static_cast<std::uint32_t>(carry));
  }
  std::string digits() const {
    std::string out;
    for (std::size_t i = limbs_.size(); i-- > 0;) {
      const std::string limb = std::to_string(limbs_[i]);
      if (!out.empty()) out.append(9 - limb.size(), '0');
      out += limb;
    }
    return out.empty() ? "0" : out;
  }

 private:
  static constexpr std::uint32_t kBase = 1'000'000'000;
  std::vector<std::uint32_t> limbs_;
};

std::uint32_t digit_value(char c) {
  if (is_digit(c)) return static_cast<std::uint32_t>(c - '0');
  return static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
}

/// Converts decimal numbers separated by colons, each sixty times the next: 1:30 is 90.
std::string sixty_based(std::string_view digits) {
  Decimal value;
  while (!digits.empty()) {
    const std::size_t end = std::min(digits.find(':'), digits.size());
    const std::string_view part = digits.substr(0, end);
    digits.remove_prefix(std::min(end + 1, digits.size()));
    value.multiply_add(60, 0);
    std::uint32_t small = 0;
    for (const char c : part) {
      if (c != '_') small = small * 10 + digit_value(c);
    }
    value.multiply_add(1, small);
  }
  return value.digits();
}

std::optional<PackValue> as_integer(std::string_view text) {
  PatternMatcher whole(text);
  const bool negative = text.starts_with('-');
  whole.one_of("+-");
  const std::string_view body = whole.rest();
  if (body.size() > kMostDigits) return std::nullopt;
  std::uint32_t base = 0;
  PatternMatcher match(body);
  std::string_view digits = body;
  if (match.word("0b")) {
    if (match.many("01_") > 0 && match.done()) base = 2;
    digits = body.substr(2);
  } else if (match.word("0x")) {
    if (match.many("0123456789abcdefABCDEF_") > 0 && match.done()) base = 16;
    digits = body.substr(2);
  } else if (match.word("0")) {
    match.many("01234567_");
    if (match.done()) base = 8;
  } else if (match.one_of("123456789")) {
    // The number before the first colon may have more digits than a part; its length is limited so that the
    // sum does not overflow.
    const std::size_t first = match.many(kDigitsOrLine) + 1;
    if (match.done()) {
      base = 10;
    } else if (first <= 9 && match.sixtieths() && match.done()) {
      base = 60;
    }
  }
  if (base == 0) return std::nullopt;
  std::string value;
  if (base == 60) {
    value = sixty_based(digits);
  } else {
    Decimal decimal;
    for (const char c : digits) {
      if (c != '_') decimal.multiply_add(base, digit_value(c));
    }
    value = decimal.digits();
  }
  return PackValue::of_integer(negative && value != "0" ? "-" + value : value);
}

std::optional<PackValue> as_real(std::string_view text) {
  PatternMatcher match(text);
  const bool negative = text.starts_with('-');
  const bool sign = match.one_of("+-");
  const std::string_view body = match.rest();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (body == ".inf" || body == ".Inf" || body == ".INF")
    return PackValue::of(negative ? -kInfinity : kInfinity);
  if (!sign && (body == ".nan" || body == ".NaN" || body == ".NAN"))
    return PackValue::of(std::numeric_limits<double>::quiet_NaN());
  const auto exponent = [&] {
    return match.one_of("eE") ? match.one_of("+-") && match.many(kDigits) > 0 : true;
  };
  bool sixty = false;
  if (match.one_of(kDigits)) {
    match.many(kDigitsOrLine);
    sixty = match.sixtieths();
    if (!match.one_of(".")) return std::nullopt;
    match.many(kDigitsOrLine);
    if (!sixty && !exponent()) return std::nullopt;
  } else if (!sign && match.one_of(".")) {
    if (!match.one_of(kDigits)) return std::nullopt;
    match.many(kDigitsOrLine);
    if (!exponent()) return std::nullopt;
  } else {
    return std::nullopt;
  }
  if (!match.done()) return std::nullopt;
  std::string digits(body);
  std::erase(digits, '_');
  double value = 0;
  for (std::string_view rest = digits; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    value = value * 60 + parse_number(rest.substr(0, end)).value_or(0);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return PackValue::of(negative ? -value : value);
}

bool is_date(std::string_view text) {
  PatternMatcher match(text);
  if (!match.digits(4, 4) || !match.one_of("-")) return false;
  PatternMatcher day = match;
  if (day.digits(2, 2) && day.one_of("-") && day.digits(2, 2) && day.done()) return true;
  if (!match.digits(1, 2) || !match.one_of("-") || !match.digits(1, 2)) return false;
  if (!match.one_of("Tt") && match.many(" \t") == 0) return false;
  if (!match.digits(1, 2) || !match.one_of(":") || !match.digits(2, 2) || !match.one_of(":") ||
      !match.digits(2, 2))
    return false;
  if (match.one_of(".")) match.many(kDigits);
  match.many(" \t");
  if (match.done() || match.one_of("Z")) return match.done();
  if (!match.one_of("+-") || !match.digits(1, 2)) return false;
  return match.done() || (match.one_of(":") && match.digits(2, 2) && match.done());
}

}  // namespace

PackValue read_yaml(std::string_view text, const std::string& file, const YamlLimits& limits) {
  const YamlDocument document(text, file, {.max_depth = limits.max_depth, .max_nodes = limits.max_nodes});
  return Expander(document, limits).run();
}

PackValue resolve_yaml_scalar(const std::string& text) {
  static const std::set<std::string_view> kTrue = {"yes",  "Yes", "YES", "true", "True",
                                                   "TRUE", "on",  "On",  "ON"};
  static const std::set<std::string_view> kFalse = {"no",    "No",  "NO",  "false", "False",
                                                    "FALSE", "off", "Off", "OFF"};
  static const std::set<std::string_view> kNull = {"", "~", "null", "Null", "NULL"};
  if (kNull.contains(text) || is_date(text)) return {};
  if (kTrue.contains(text)) return PackValue::of(true);
  if (kFalse.contains(text)) return PackValue::of(false);
  if (auto value = as_integer(text)) return *value;
  if (auto value = as_real(text)) return *value;
  return PackValue::of_text(text);
}

}  // namespace msprobe::pack
