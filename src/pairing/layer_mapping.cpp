// SPDX-License-Identifier: Apache-2.0
#include "pairing/layer_mapping.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "dump/names.hpp"
#include "dump/stack_json.hpp"
#include "pairing/matching.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pairing {
namespace {

using Parts = std::vector<std::string_view>;

/// No model nests deeper.
constexpr std::size_t kMostParts = 200;

std::string join(const Parts& parts, std::size_t begin, std::size_t end) {
  std::string out;
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) out += '.';
    out += parts[i];
  }
  return out;
}

/// One entry and its place in the model.
struct ModelPlace {
  bool valid = false;      // its name has the parts that the rules need
  std::string scope;       // layers, the framework's function, the operation
  std::string type;        // class of a module, name of an operation
  std::string_view state;  // forward, backward, parameters_grad
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Part of a stack line between commas: 0 is the file, 2 the function.
std::string_view stack_part(std::string_view line, std::size_t number) {
  const Parts parts = split(line, ",");
  return number < parts.size() ? parts[number] : std::string_view();
}

/// `add` of ` in add`.
std::string_view function_name(std::string_view part) {
  constexpr std::string_view kBlanks = " \t\n\r";
  for (const bool first : {true, false}) {
    part.remove_prefix(std::min(part.find_first_not_of(kBlanks), part.size()));
    if (first) part.remove_prefix(std::min(part.find_first_of(kBlanks), part.size()));
  }
  return part.substr(0, part.find_first_of(kBlanks));
}

/// The function of the framework through which the user's code called the operation; empty if the stack shows
/// no such function.
std::string_view frame_function(const dump::StackTable::Frames& lines, bool mindspore) {
  std::optional<std::size_t> start;
  std::size_t end = lines.size();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (contains(lines[i], "Template")) {
      start = i;
    } else if (start &&
               (mindspore ? contains(lines[i], "construct")
                          : contains(lines[i], "in forward,") || contains(lines[i], "in backward,"))) {
      end = i;
      break;
    }
  }
  std::string_view frame;
  for (std::size_t i = start ? *start + 1 : 0; i < end; ++i) {
    const std::string_view file = stack_part(lines[i], 0);
    const bool framework = contains(file, "site-packages/torch") || contains(file, "package/torch") ||
                           contains(file, "site-packages/mindspore") || contains(file, "package/mindspore");
    if (!framework) break;
    frame = lines[i];
  }
  const std::string_view file = stack_part(frame, 0);
  const std::string_view function = stack_part(frame, 2);
  if (contains(file, "msprobe") || contains(file, "MindSpeed") || contains(function, "construct") ||
      contains(function, "__call__"))
    return {};
  return function_name(function);
}

/// The places of one side's entries.
class EntryPlaces {
 public:
  EntryPlaces(const Side& side, const ModelPlaces& places)
      : side_(side), model_(places), places_(side.apis.size()) {
    std::unordered_map<std::string_view, std::uint32_t> by_name;
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
      places_[i] = locate(name(i));
      by_name.emplace(name(i), i);
    }
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) follow_forward(i, by_name);
    renumber_layers();
  }

  std::size_t size() const { return places_.size(); }
  const ModelPlace& at(std::size_t i) const { return places_[i]; }

 private:
  std::string_view name(std::uint32_t api) const { return side_.text(side_.apis[api].name); }

  ModelPlace locate(std::string_view entry) const {
    ModelPlace place;
    const Parts parts = split(entry, ".");
    const std::size_t count = parts.size();
    if (count < 4 || count > kMostParts) return place;
    place.valid = true;
    const bool gradient_number = parts[count - 2] == "parameters_grad" && dump::is_digits(parts[count - 1]);
    if (parts[count - 1] == "parameters_grad" || gradient_number) {
      // The name and class of the module come before this word.
      const std::size_t word = count - (gradient_number ? 2 : 1);
      place.state = "parameters_grad";
      place.type = parts[word - 1];
      place.scope = join(parts, 0, word - 2);
      place.scope += ".";
      place.scope += parts[word - 2];
      return place;
    }
    if (parts[0] == "Cell" || parts[0] == "Module") {
      place.state = parts[count - 2];
      place.type = parts[count - 3];
      place.scope = join(parts, 0, count - 3);
      return place;
    }
    place.state = parts[count - 1];
    place.type = parts[count - 3];
    const Parts parent = split(model_.construct->parent(entry), ".");
    place.scope =
        parent.size() >= 4 && parent.size() <= kMostParts ? join(parent, 0, parent.size() - 3) : "TopLayer";
    const dump::StackTable& stacks = model_.stacks_of_side ? *side_.stacks : model_.stacks;
    if (const auto* stack = stacks.find(entry);
        stack != nullptr && parts[0] != "Primitive" && parts[0] != "Jit") {
      if (const std::string_view function = frame_function(*stack, model_.mindspore); !function.empty()) {
        place.scope += ".";
        place.scope += function;
      }
    }
    place.scope += ".";
    place.scope += place.type;
    return place;
  }

  /// Backward calls have no stack. They take the place of their forward call.
  void follow_forward(std::uint32_t api, const std::unordered_map<std::string_view, std::uint32_t>& by_name) {
    if (!places_[api].valid) return;
    Parts parts = split(name(api), ".");
    bool backward = false;
    for (std::size_t i = parts.size() - 2; i < parts.size(); ++i) {
      if (parts[i] != "backward") continue;
      parts[i] = "forward";
      backward = true;
    }
    if (!backward) return;
    const auto forward = by_name.find(join(parts, 0, parts.size()));
    if (forward != by_name.end() && places_[forward->second].valid)
      places_[api].scope = places_[forward->second].scope;
  }

  /// Pipeline stages number their layers from 0 in one framework and through in the other: below each
  /// ParallelTransformer the numbers count from its smallest one.
  void renumber_layers() {
    std::unordered_map<std::string, std::uint64_t> smallest;  // by `{scope of the transformer}.layers`
    for (const ModelPlace& place : places_) {
      if (place.valid && place.type == "ParallelTransformer")
        smallest.emplace(place.scope + ".layers", std::numeric_limits<std::uint64_t>::max());
    }
    if (smallest.empty()) return;
    for (const ModelPlace& place : places_) {
      each_layer(place.scope, smallest,
                 [](std::size_t, std::size_t, std::uint64_t number, std::uint64_t& least) {
                   least = std::min(least, number);
                 });
    }
    for (ModelPlace& place : places_) {
      std::string renumbered;
      std::size_t copied = 0;
      each_layer(place.scope, smallest,
                 [&](std::size_t begin, std::size_t end, std::uint64_t number, std::uint64_t least) {
                   renumbered.append(place.scope, copied, begin - copied);
                   renumbered += std::to_string(number - least);
                   copied = end;
                 });
      if (copied > 0) place.scope = renumbered.append(place.scope, copied);
    }
  }

  /// Calls visit(begin, end, number, smallest) for each path element that follows a known prefix.
  template <typename Visit>
  static void each_layer(const std::string& scope, std::unordered_map<std::string, std::uint64_t>& smallest,
                         Visit&& visit) {
    constexpr std::string_view kLayers = ".layers.";
    for (std::size_t at = scope.find(kLayers); at != std::string::npos; at = scope.find(kLayers, at + 1)) {
      const std::size_t begin = at + kLayers.size();
      const auto found = smallest.find(scope.substr(0, begin - 1));
      if (found == smallest.end()) continue;
      const std::size_t end = std::min(scope.find('.', begin), scope.size());
      if (const auto number = last_number(std::string_view(scope).substr(begin, end - begin)))
        visit(begin, end, *number, found->second);
    }
  }

  static std::optional<std::uint64_t> last_number(std::string_view text) {
    while (!text.empty() && !dump::is_digits(text.substr(text.size() - 1))) text.remove_suffix(1);
    std::size_t begin = text.size();
    while (begin > 0 && dump::is_digits(text.substr(begin - 1, 1))) --begin;
    const std::string_view digits = text.substr(begin);
    constexpr std::size_t kMostDigits = 18;
    if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
    return std::stoull(std::string(digits));
  }

  const Side& side_;
  const ModelPlaces& model_;
  std::vector<ModelPlace> places_;
};

/// A side's model: its layers, and the entries at each of them.
class PlaceTree {
 public:
  explicit PlaceTree(const EntryPlaces& places) : order_(places.size(), 0) {
    nodes_.emplace_back().type = "TopLayer";
    for (std::uint32_t i = 0; i < places.size(); ++i) {
      const ModelPlace& place = places.at(i);
      if (place.valid) insert(place, i);
    }
  }

  const std::string& type(std::uint32_t node) const { return nodes_[node].type; }
  std::uint32_t child(std::uint32_t node, std::string_view name) const {
    const auto found = children_.find(child_key(node, name));
    return found == children_.end() ? kNone : found->second;
  }
  /// The position of an entry among the entries at its place.
  std::size_t order_of(std::uint32_t api) const { return order_[api]; }
  std::uint32_t entry(std::uint32_t node, std::string_view state, std::size_t order) const {
    const auto found = nodes_[node].entries.find(state);
    return found == nodes_[node].entries.end() || order >= found->second.size() ? kNone
                                                                                : found->second[order];
  }

 private:
  struct PlaceNode {
    std::string type;
    std::map<std::string, std::vector<std::uint32_t>, std::less<>> entries;  // by state
  };

  static std::string child_key(std::uint32_t node, std::string_view name) {
    std::string key(reinterpret_cast<const char*>(&node), sizeof(node));
    return key.append(name);
  }

  void insert(const ModelPlace& place, std::uint32_t api) {
    const Parts parts = split(place.scope, ".");
    std::uint32_t node = 0;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const auto [found, is_new] =
          children_.try_emplace(child_key(node, parts[i]), static_cast<std::uint32_t>(nodes_.size()));
      if (is_new) nodes_.emplace_back().type = parts[i];
      node = found->second;
    }
    nodes_[node].type = place.type;
    auto& entries = nodes_[node].entries[std::string(place.state)];
    order_[api] = entries.size();
    entries.push_back(api);
  }

  std::vector<PlaceNode> nodes_;
  std::unordered_map<std::string, std::uint32_t> children_;  // by node and name
  std::vector<std::size_t> order_;
};

/// The longest rule for the next path elements in a layer of this class: how many elements it takes, and its
/// value.
std::pair<std::size_t, const std::string*> find_rule(const LayerMapping& mapping, const std::string& type,
                                                     const Parts& parts, std::size_t at) {
  const auto rules = mapping.find(type);
  if (rules == mapping.end()) return {1, nullptr};
  const auto lengths = rules->second.lengths.find(parts[at]);
  if (lengths == rules->second.lengths.end()) return {1, nullptr};
  for (const std::size_t length : lengths->second) {
    if (length > parts.size() - at) continue;
    if (const std::string* value = rules->second.paths.find(join(parts, at, at + length)))
      return {length, value};
  }
  return {1, nullptr};
}

/// The golden entry at the place to which the mapping leads from a target entry's place.
std::uint32_t find_partner(const PlaceTree& target, const PlaceTree& golden, const LayerMapping& mapping,
                           const ModelPlace& place, std::uint32_t api, bool& applies) {
  const Parts parts = split(place.scope, ".");
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  for (std::size_t i = 1; i < parts.size() && to != kNone;) {
    const auto [length, instead] = find_rule(mapping, target.type(from), parts, i);
    applies = applies || instead != nullptr;
    for (const std::string_view part : instead == nullptr ? Parts{parts[i]} : split(*instead, ".")) {
      if (to != kNone) to = golden.child(to, part);
    }
    for (const std::size_t end = i + length; i < end; ++i) from = target.child(from, parts[i]);
  }
  return to == kNone ? kUnmatched : golden.entry(to, place.state, target.order_of(api));
}

}  // namespace

ModelPlaces read_model_places(const Side& side, const dump::ConstructBeside* beside) {
  const std::filesystem::path folder = std::filesystem::path(side.json).parent_path();
  ModelPlaces places;
  places.mindspore = side.header.is_mindspore() || side.header.framework == "mindtorch";
  const std::string construct = (folder / "construct.json").string();
  if (std::error_code ignored; !std::filesystem::exists(construct, ignored)) {
    throw IoError(display(construct),
                  "not found; --layer_mapping needs it to locate operations in the model");
  }
  if (beside == nullptr) {
    places.construct =
        std::make_shared<dump::ConstructTable>(dump::read_construct_json(*open_file(construct)));
  } else {
    if (!beside->problem().empty()) throw FormatError(beside->problem());
    places.construct = {std::shared_ptr<void>(), &beside->table()};  // it is kept elsewhere
  }
  const std::string stacks = (folder / "stack.json").string();
  places.stacks_of_side = side.stacks && side.stack_json == stacks;
  if (std::error_code ignored; !places.stacks_of_side && std::filesystem::exists(stacks, ignored))
    places.stacks = dump::read_stack_json(*open_file(stacks));
  return places;
}

LayerPartners map_layers(const Side& target, const ModelPlaces& target_places, const Side& golden,
                         const ModelPlaces& golden_places, const LayerMapping& mapping) {
  const EntryPlaces from(target, target_places);
  const EntryPlaces to(golden, golden_places);
  const PlaceTree target_tree(from);
  const PlaceTree golden_tree(to);
  LayerPartners partners{std::vector<std::uint32_t>(target.apis.size(), kUnmatched)};
  for (std::uint32_t i = 0; i < partners.golden_of.size(); ++i) {
    if (from.at(i).valid)
      partners.golden_of[i] =
          find_partner(target_tree, golden_tree, mapping, from.at(i), i, partners.mapping_applies);
  }
  return partners;
}

}  // namespace msprobe::pairing
