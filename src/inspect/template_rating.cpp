// SPDX-License-Identifier: Apache-2.0
#include "inspect/template_rating.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "inspect/template_syntax.hpp"
#include "inspect/text_blocks.hpp"

namespace msprobe::inspect {
namespace {

using formats::Rating;
using Kind = TemplateKind;
using Ref = std::uint32_t;

/// The origin of a value, which decides which texts it may be when it is used as the name of an attribute.
enum class ExpressionOrigin : std::uint8_t {
  number,   // never a text
  caller,   // a value from the caller, unchanged
  literal,  // a text of the template, character by character
  made,     // computed in the template, so it may be any text
};

constexpr std::string_view kFunctions =
    "raise_exception strftime_now namespace range dict caller cycler joiner tojson";
constexpr std::string_view kMethods =
    "append capitalize clear copy count endswith extend find get index insert isalnum isalpha isdigit "
    "isnumeric isspace isupper islower items join keys lower lstrip partition pop remove removeprefix "
    "removesuffix replace reverse rfind rindex rpartition rsplit rstrip setdefault sort split splitlines "
    "startswith strip swapcase title update upper values zfill ljust rjust center cycle changed next reset "
    "strftime isoformat";
// These methods put their arguments into their object.
constexpr std::string_view kChanging = "append extend insert setdefault update add";
// The first argument of these names a filter, a test or an attribute.
constexpr std::string_view kNaming = "map select reject selectattr rejectattr groupby";
constexpr std::string_view kFilters =
    "abs batch capitalize center count d default dictsort e escape filesizeformat first float forceescape "
    "format fromjson from_json groupby indent int items join last length list lower map max min pprint "
    "random reject rejectattr replace reverse round safe select selectattr slice sort string striptags sum "
    "title tojson to_json trim truncate unique upper urlencode urlize wordcount wordwrap";
// These filters never return a text.
constexpr std::string_view kCounting = "abs count float int length round sum wordcount";
// These filters return their value or a part of it.
constexpr std::string_view kPassing =
    "batch capitalize d default dictsort first groupby items last list lower max min reverse select "
    "selectattr reject rejectattr slice sort title trim unique upper";
// Prefixes of Python's names for the parts of generators, frames and functions, which lead to modules.
constexpr std::string_view kInternal = "gi_ cr_ ag_ f_ tb_ func_ im_ co_";
// From any value these names lead to the modules of Python.
constexpr std::string_view kGadgets =
    "__globals__ __subclasses__ __builtins__ __import__ __mro__ __bases__ __init__ __class__ __base__ "
    "__dict__";

class TemplateJudge {
 public:
  explicit TemplateJudge(std::vector<TemplateNode> nodes) : nodes_(std::move(nodes)) {}

  std::optional<TemplateFinding> run() {
    for (const TemplateNode& node : nodes_) {
      if (node.kind == Kind::macro) macros_[node.text].push_back(&node);
      if (node.kind == Kind::call && at(node.children[0]).kind == Kind::attribute)
        called_.insert(at(node.children[0]).text);
    }
    // The loop ends, because an origin never becomes less severe.
    origins_.resize(nodes_.size());
    constexpr int kMostPasses = 30;
    int passes = 0;
    do {
      if (++passes > kMostPasses) {
        note(Rating::unknown, "passes its values on too often");
        break;
      }
      changed_ = false;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        origins_[i] = origin_of_node(nodes_[i]);
        learn(nodes_[i]);
      }
    } while (changed_);
    for (const TemplateNode& node : nodes_) judge(node);
    return finding_;
  }

 private:
  const TemplateNode& at(Ref ref) const { return nodes_[ref]; }

  void worsen(std::map<std::string, ExpressionOrigin, std::less<>>& known, const std::string& name,
              ExpressionOrigin origin) {
    const auto [place, fresh] = known.try_emplace(name, origin);
    if (!fresh && place->second >= origin) return;
    changed_ = true;
    place->second = std::max(place->second, origin);
  }

  void assign(Ref target, ExpressionOrigin origin) {
    const TemplateNode& node = at(target);
    if (node.kind == Kind::list) {
      for (const Ref each : node.children) assign(each, origin);
    } else {
      worsen(node.kind == Kind::attribute ? attributes_ : names_, node.text, origin);
    }
  }

  void keep_namespace(Ref target) {
    const TemplateNode& node = at(target);
    if (node.kind == Kind::name) namespaces_.insert(node.text);
    if (node.kind == Kind::list && !node.children.empty()) keep_namespace(node.children.front());
  }

  static bool is_namespace(const TemplateNode& node) {
    return node.kind == Kind::name && node.text == "namespace";
  }

  void learn(const TemplateNode& node) {
    if (node.kind == Kind::assign) {
      assign(node.children[1], origin_of(node.children[0]));
      const TemplateNode& value = at(node.children[0]);
      if (value.kind == Kind::call && is_namespace(at(value.children[0]))) keep_namespace(node.children[1]);
    }
    if (node.kind == Kind::macro) {
      for (std::size_t i = 1; i < node.children.size(); ++i) {
        if (at(node.children[i]).kind == Kind::name)
          worsen(names_, at(node.children[i]).text, ExpressionOrigin::number);
      }
    }
    if (node.kind != Kind::call) return;
    const TemplateNode& callee = at(node.children[0]);
    const bool changes = callee.kind == Kind::attribute && has_word(kChanging, callee.text);
    for (std::size_t i = 1; i < node.children.size() && (changes || is_namespace(callee)); ++i) {
      const TemplateNode& given = at(node.children[i]);
      if (given.kind == Kind::keyword) worsen(attributes_, given.text, origin_of(given.children[0]));
    }
    const ExpressionOrigin worst = worst_of(node, 1);
    if (changes) {
      Ref changed = callee.children[0];
      while (at(changed).kind == Kind::attribute || at(changed).kind == Kind::item) {
        if (at(changed).kind == Kind::attribute) worsen(attributes_, at(changed).text, worst);
        changed = at(changed).children[0];
      }
      if (at(changed).kind == Kind::name) worsen(names_, at(changed).text, worst);
    }
    const auto macro = callee.kind == Kind::name ? macros_.find(callee.text) : macros_.end();
    if (macro == macros_.end()) return;
    for (const TemplateNode* each : macro->second) hand_on(*each, worst);
    worsen(names_, "varargs", worst);
    worsen(names_, "kwargs", worst);
  }

  void hand_on(const TemplateNode& macro, ExpressionOrigin worst) {
    for (std::size_t i = 1; i < macro.children.size(); ++i) {
      const TemplateNode& parameter = at(macro.children[i]);
      if (parameter.kind == Kind::name) worsen(names_, parameter.text, worst);
      if (parameter.kind == Kind::assign) assign(parameter.children[1], worst);
    }
  }

  ExpressionOrigin worst_of(const TemplateNode& node, std::size_t first = 0) const {
    ExpressionOrigin worst = ExpressionOrigin::number;
    for (std::size_t i = first; i < node.children.size(); ++i)
      worst = std::max(worst, origin_of(node.children[i]));
    return worst;
  }

  // Children have smaller numbers than their parents, so that one pass over the nodes needs no recursion.
  ExpressionOrigin origin_of(Ref ref) const { return origins_[ref]; }

  ExpressionOrigin origin_of_node(const TemplateNode& node) const {
    switch (node.kind) {
      case Kind::number:
      case Kind::compute:
      case Kind::compare:
      case Kind::test:
        return ExpressionOrigin::number;
      case Kind::constant:
        return node.strange || node.text.starts_with('_') ? ExpressionOrigin::made
                                                          : ExpressionOrigin::literal;
      case Kind::name:
        return origin_of_name(node.text);
      case Kind::attribute: {
        const auto own = attributes_.find(node.text);
        if (at(node.children[0]).kind == Kind::name && at(node.children[0]).text == "loop")
          return has_word("index index0 revindex revindex0 length first last depth depth0", node.text)
                     ? ExpressionOrigin::number
                     : ExpressionOrigin::made;
        return std::max(own == attributes_.end() ? ExpressionOrigin::caller : own->second,
                        origin_of(node.children[0]));
      }
      case Kind::item: {
        const ExpressionOrigin from = origin_of(node.children[0]);
        // A piece of the template's text is a different text.
        if (from == ExpressionOrigin::literal && at(node.children[0]).kind != Kind::list)
          return ExpressionOrigin::made;
        const TemplateNode& index = at(node.children[1]);
        ExpressionOrigin own = ExpressionOrigin::caller;
        for (const auto& [name, origin] : attributes_) {
          if (index.kind != Kind::constant || index.text == name) own = std::max(own, origin);
        }
        return std::max(from, own);
      }
      case Kind::list:
      case Kind::choice:
      case Kind::slice:
      case Kind::keyword:
      case Kind::spread:
        return worst_of(node);
      case Kind::add: {
        const ExpressionOrigin left = origin_of(node.children[0]);
        const ExpressionOrigin right = origin_of(node.children[1]);
        return std::min(left, right) == ExpressionOrigin::number ? ExpressionOrigin::number
                                                                 : ExpressionOrigin::made;
      }
      case Kind::multiply:
        return worst_of(node) == ExpressionOrigin::number ? ExpressionOrigin::number
                                                          : origin_of_product(node);
      case Kind::filter:
        if (has_word(kCounting, node.text)) return ExpressionOrigin::number;
        if (!has_word(kPassing, node.text)) return ExpressionOrigin::made;
        return worst_of(node) <= ExpressionOrigin::caller || has_word("d default dictsort items", node.text)
                   ? worst_of(node)
               : at(node.children[0]).kind == Kind::list &&
                       !has_word("capitalize lower title trim upper", node.text)
                   ? worst_of(node)
                   : ExpressionOrigin::made;
      case Kind::call:
        return origin_of_call(node);
      default:
        return ExpressionOrigin::made;
    }
  }

  ExpressionOrigin origin_of_product(const TemplateNode& node) const {
    // With a text on the left, % formats.
    return origin_of(node.children[0]) == ExpressionOrigin::number &&
                   origin_of(node.children[1]) <= ExpressionOrigin::caller
               ? ExpressionOrigin::caller
               : ExpressionOrigin::made;
  }

  ExpressionOrigin origin_of_name(const std::string& name) const {
    if (has_word("loop", name)) return ExpressionOrigin::caller;
    if (names_function(name)) return ExpressionOrigin::made;
    const auto known = names_.find(name);
    return known == names_.end() ? ExpressionOrigin::caller : known->second;
  }

  ExpressionOrigin origin_of_call(const TemplateNode& node) const {
    const TemplateNode& callee = at(node.children[0]);
    if (callee.kind == Kind::name && callee.text == "range") return ExpressionOrigin::number;
    if (is_namespace(callee)) return ExpressionOrigin::caller;  // `attributes_` tracks its members by name
    if (callee.kind != Kind::attribute) return ExpressionOrigin::made;
    const ExpressionOrigin from = origin_of(callee.children[0]);
    if (has_word("find rfind index count isdigit", callee.text)) return ExpressionOrigin::number;
    if (from <= ExpressionOrigin::caller &&
        has_word("get items keys values pop strip lstrip rstrip lower upper split", callee.text))
      return std::max({from, ExpressionOrigin::caller,
                       has_word("get pop", callee.text) ? worst_of(node, 2) : ExpressionOrigin::number});
    return ExpressionOrigin::made;
  }

  void note(Rating rating, std::string what) {
    if (!finding_ || finding_->rating < rating)
      finding_ = TemplateFinding{rating, "a template that " + std::move(what)};
  }

  void judge_name(std::string_view name) {
    const bool internal =
        name.starts_with('_') || has_word(kInternal, name.substr(0, name.find('_') + 1)) || name == "mro";
    if (internal) note_internal(name);
  }

  void note_internal(std::string_view name) {
    const bool gadget = has_word(kGadgets, name);
    note(gadget ? Rating::dangerous : Rating::unknown, std::string(gadget ? "leads" : "may lead") +
                                                           " to Python's internals (" +
                                                           std::string(name.substr(0, 40)) + ")");
  }

  /// Judges a constant at any place, since it may become the name of an attribute.
  void judge_constant(const TemplateNode& node) {
    if (node.strange) return note(Rating::unknown, "hides a text");
    const bool name = node.text.find("__") != std::string::npos || node.text.find("._") != std::string::npos;
    if (name) note_internal(node.text);
  }

  void judge(const TemplateNode& node) {
    if (node.kind == Kind::constant) judge_constant(node);
    // If a template replaces a member that it calls like a method, the call runs the replacement.
    const auto replaces = [&](std::string_view name) {
      if (called_.contains(name))
        note(Rating::unknown, "redefines the method " + std::string(name.substr(0, 40)));
    };
    if (node.kind == Kind::keyword) replaces(node.text);
    if (node.kind == Kind::list || node.kind == Kind::assign) {
      for (const Ref each : node.children) {
        if (at(each).kind == Kind::constant || at(each).kind == Kind::attribute) replaces(at(each).text);
      }
    }
    if (node.kind == Kind::keyword && node.text == "caller")
      note(Rating::unknown, "passes a function on (caller)");
    if (node.kind == Kind::attribute && is_function(node.children[0]))
      note(Rating::unknown, "reads a part of a function");
    if (node.kind == Kind::attribute || node.kind == Kind::keyword) judge_name(node.text);
    if (node.kind == Kind::name && node.text.starts_with("__")) judge_name(node.text);
    if (node.kind == Kind::item) {
      judge_index(node.children[1]);
      judge_indexed(node);
    }
    if (node.kind == Kind::filter || node.kind == Kind::test) judge_filter(node);
    if (node.kind == Kind::call) judge_call(node);
  }

  /// Is it a function of Jinja or a macro? Its attributes lead to Python's internals.
  bool is_function(Ref ref) const { return at(ref).kind == Kind::name && names_function(at(ref).text); }
  bool names_function(const std::string& name) const {
    return has_word(kFunctions, name) || has_word("self lipsum", name) || macros_.contains(name);
  }

  /// If the caller sets an index (as for a special token), it may be the name of any attribute. This is
  /// harmless only on the caller's data, which are texts, lists and dicts.
  void judge_indexed(const TemplateNode& node) {
    const TemplateNode& index = at(node.children[1]);
    if (index.kind == Kind::constant || index.kind == Kind::slice ||
        origin_of(node.children[1]) == ExpressionOrigin::number)
      return;
    const TemplateNode& base = at(node.children[0]);
    const bool method = base.kind == Kind::attribute && has_word(kMethods, base.text);
    const bool object = base.kind == Kind::name && (base.text == "loop" || namespaces_.contains(base.text));
    if (method || object || is_function(node.children[0]) ||
        origin_of(node.children[0]) == ExpressionOrigin::made)
      note(Rating::unknown, "reads a part of an object by a name that the caller gives");
  }

  void judge_index(Ref ref) {
    const TemplateNode& index = at(ref);
    if (index.kind == Kind::constant) {
      if (index.strange) return note(Rating::unknown, "hides the name of an attribute");
      return judge_name(index.text);
    }
    if (index.kind == Kind::slice) return;
    if (origin_of(ref) == ExpressionOrigin::made) note(Rating::unknown, "computes the name of an attribute");
  }

  void judge_filter(const TemplateNode& node) {
    if (node.kind == Kind::filter && node.text == "attr") {
      for (std::size_t i = 1; i < node.children.size(); ++i) judge_index(node.children[i]);
      return note(Rating::unknown, "reads an attribute by its name (attr)");
    }
    if (node.kind == Kind::filter && !has_word(kFilters, node.text))
      return note(Rating::unknown, "uses the filter " + node.text.substr(0, 40));
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      const TemplateNode& given = at(node.children[i]);
      const bool attribute = given.kind == Kind::keyword && given.text == "attribute";
      const bool first =
          i == 1 && given.kind != Kind::keyword && node.kind == Kind::filter && has_word(kNaming, node.text);
      if (given.kind == Kind::spread) note(Rating::unknown, "passes on unknown arguments");
      // Their further arguments name attributes, too.
      const bool separator = node.text == "join" && i == 1;
      if (!separator && has_word("sum join sort unique max min", node.text) &&
          origin_of(node.children[i]) == ExpressionOrigin::made)
        note(Rating::unknown, "computes the name of an attribute");
      if (!attribute && !first) continue;
      const TemplateNode& name = attribute ? at(given.children[0]) : given;
      if (name.kind == Kind::number) continue;
      if (name.kind != Kind::constant || name.strange) {
        note(Rating::unknown, "computes the name of an attribute");
        continue;
      }
      for (std::string_view rest = name.text; !rest.empty();) {
        const std::size_t dot = std::min(rest.find('.'), rest.size());
        judge_name(rest.substr(0, dot));
        rest.remove_prefix(std::min(dot + 1, rest.size()));
      }
      if (first && node.text == "map" && !has_word(kFilters, name.text))
        note(Rating::unknown, "uses the filter " + name.text.substr(0, 40));
      // map passes its other arguments to a filter.
      if (first && node.text == "map" && has_word(kNaming, name.text))
        note(Rating::unknown, "reads attributes by map");
    }
  }

  void judge_call(const TemplateNode& node) {
    const TemplateNode& callee = at(node.children[0]);
    for (const Ref each : node.children) {
      if (callee.kind == Kind::attribute && at(each).kind == Kind::keyword && at(each).text == "key")
        return note(Rating::unknown, "passes a function on (key)");
    }
    if (callee.kind == Kind::name && (macros_.contains(callee.text) || has_word(kFunctions, callee.text))) {
      if (names_.contains(callee.text)) note(Rating::unknown, "redefines " + callee.text);
      return;
    }
    if (callee.kind == Kind::attribute && has_word(kMethods, callee.text)) return;
    const bool named = callee.kind == Kind::name || callee.kind == Kind::attribute;
    note(Rating::unknown,
         named ? "calls " + callee.text.substr(0, 40) + "()" : "calls a function that it computes");
  }

  std::vector<TemplateNode> nodes_;
  std::map<std::string, std::vector<const TemplateNode*>, std::less<>> macros_;
  std::set<std::string, std::less<>> called_;                        // names of called methods
  std::set<std::string, std::less<>> namespaces_;                    // names of namespace objects
  std::map<std::string, ExpressionOrigin, std::less<>> names_;       // the names that the template sets
  std::map<std::string, ExpressionOrigin, std::less<>> attributes_;  // the attributes of its namespaces
  std::vector<ExpressionOrigin> origins_;                            // of the nodes
  bool changed_ = false;
  std::optional<TemplateFinding> finding_;
};

}  // namespace

std::optional<TemplateFinding> rate_template(std::string_view text, bool prose) {
  if (text.find("{{") == std::string_view::npos && text.find("{%") == std::string_view::npos) return {};
  try {
    return TemplateJudge(parse_template(text)).run();
  } catch (const BrokenTemplate& error) {
    if (prose && text.find("__") == std::string_view::npos) return {};
    return TemplateFinding{Rating::unknown, std::string("a template that is broken: ") + error.what()};
  } catch (const StrangeTemplate& error) {
    return TemplateFinding{Rating::unknown, error.what()};
  }
}

}  // namespace msprobe::inspect
