// SPDX-License-Identifier: Apache-2.0
#include "inspect/loader_marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <string>

#include "inspect/text_blocks.hpp"

namespace msprobe::inspect {
namespace {

/// The rating of "package.module.name".
Rating rate_dotted(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return formats::rate_global(name, "");
  return formats::rate_global(name.substr(0, dot), name.substr(dot + 1));
}

/// Behind the mark: `tuple`, `name:os.system`, `object/apply:os.system` (PyYAML's constructor.py).
Finding yaml_tag(std::string_view rest) {
  static constexpr std::array<std::string_view, 12> kPlain = {
      "none", "bool", "str", "unicode", "bytes", "int", "long", "float", "complex", "list", "tuple", "dict"};
  const auto end =
      std::ranges::find_if(rest, [](char c) { return c == ':' || static_cast<unsigned char>(c) <= ' '; });
  const std::string_view kind = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  if (std::ranges::find(kPlain, kind) != kPlain.end()) return {};
  std::string_view name = rest.substr(std::min(kind.size() + 1, rest.size()));
  if (name.starts_with('\'') || name.starts_with('"')) name.remove_prefix(1);
  name = name_at(name);
  const Rating rating = name.empty() ? Rating::unknown : rate_dotted(name);
  if (rating == Rating::ok) return {};
  return ContentFacts{
      fmt::format("YAML tag !!python/{}{}{}", kind.substr(0, 40), name.empty() ? "" : ":", name), "", rating};
}

/// `%79` as the character that it stands for in a tag of YAML.
std::string without_percents(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const bool escape = text[i] == '%' && text.size() - i > 2 &&
                        std::from_chars(&text[i + 1], &text[i + 1] + 2, code, 16).ptr == &text[i + 1] + 2;
    plain += escape ? static_cast<char>(code) : text[i];
    if (escape) i += 2;
  }
  return plain;
}

/// A tag behind `!!`, and one that is written in full: `!<tag:yaml.org,2002:python/...>`.
Finding escaped_tag(std::string_view tag, std::string_view mark) {
  if (tag.find('%') == std::string_view::npos) return {};
  const std::string plain = without_percents(tag);
  if (!plain.starts_with(mark)) return {};
  return yaml_tag(std::string_view(plain).substr(mark.size()));
}
Finding short_tag(std::string_view rest) {
  return escaped_tag(rest.substr(0, rest.find_first_of(" \t\r\n!")), "python/");
}
Finding full_tag(std::string_view rest) {
  return escaped_tag(rest.substr(0, rest.find_first_of(" \t\r\n>!")), "tag:yaml.org,2002:python/");
}

/// `&key _target_`: a name for the key, to be used as `*key: os.system`.
Finding anchored_target(std::string_view rest) {
  rest.remove_prefix(name_at(rest).size());
  const std::size_t at = rest.find_first_not_of(" \t\"'");
  if (at == std::string_view::npos || at == 0 || !rest.substr(at).starts_with("_target_")) return {};
  return always("_target_ that is computed");
}

/// What stands behind a key of JSON, YAML or TOML, within a string too; empty if this was no key.
std::string_view value_behind(std::string_view rest) {
  constexpr std::string_view kBetween = "\\\"' \t\r\n";
  const auto skip = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(kBetween), rest.size())); };
  skip();
  if (!rest.starts_with(':') && !rest.starts_with('=')) return {};
  rest.remove_prefix(1);
  skip();
  return rest;
}

/// Hydra's key for what is to be called.
Finding hydra_target(std::string_view rest) {
  std::string_view value = value_behind(rest);
  // A block of YAML, and a tag that says what is a text anyway.
  if (value.starts_with('>') || value.starts_with('|'))
    value.remove_prefix(std::min(value.find('\n'), value.size()));
  if (value.starts_with("!!str")) value.remove_prefix(5);
  value.remove_prefix(std::min(value.find_first_not_of(" \t\r\n\"'"), value.size()));
  const std::string_view name = name_at(value);
  const bool dotted = name.find('.') != std::string_view::npos && !(name[0] >= '0' && name[0] <= '9');
  constexpr std::string_view kComputing = "$!&*\\";
  const std::string_view next = value.substr(name.size(), 1);
  if (!next.empty() && kComputing.find(next) != std::string_view::npos)
    return always("_target_ that is computed");
  if (!dotted) return {};
  const Rating rating = rate_dotted(name);
  if (rating == Rating::ok) return {};
  return ContentFacts{fmt::format("_target_ {}", name), "", rating};
}

/// transformers takes an attention function from the repository that is named here, or in one of the values
/// of a dict.
Finding kernel_repository(std::string_view rest) {
  if (rest.starts_with("_internal")) rest.remove_prefix(9);
  const std::string_view value = value_behind(rest);
  const std::string_view name =
      value.substr(0, value.find_first_of(value.starts_with('{') ? "}" : "\\\"',}\r\n"));
  if (name.find('/') == std::string_view::npos) return {};
  if (name.starts_with('{')) return always("an implementation from another repository");
  return always(fmt::format("an implementation from another repository, {}", name));
}

/// A key whose value names a class or a function by its module, but for those of packages that are expected.
Finding named_code(std::string_view key, std::string_view rest,
                   std::initializer_list<std::string_view> expected) {
  const std::string_view value = value_behind(rest);
  const std::string_view name = value.substr(0, value.find_first_of("\\\"',}] \r\n"));
  const bool dotted =
      name.find('.') != std::string_view::npos && !name.empty() && !(name[0] >= '0' && name[0] <= '9');
  const bool fine =
      std::ranges::any_of(expected, [&](std::string_view head) { return name.starts_with(head); });
  if (!dotted || fine) return {};
  return always(fmt::format("{} {}", key, name), std::max(Rating::unknown, rate_dotted(name)));
}

Finding keras_class(std::string_view rest) {
  if (name_at(value_behind(rest)) != "Lambda") return {};
  return always("a Lambda layer of Keras, which holds code");
}

/// Of a serialized object of Keras, which imports the module.
Finding keras_module(std::string_view rest) {
  const std::string_view module = name_at(value_behind(rest));
  constexpr std::string_view kClass = "\"class_name\"";
  const std::size_t at = rest.find(kClass);
  if (module.empty() || at > 200 || module == "null" || module.starts_with("keras")) return {};
  const std::string_view name = name_at(value_behind(rest.substr(at + kClass.size())));
  const Rating rating = formats::rate_global(module, name);
  return ContentFacts{fmt::format("Keras's {} of module {}", name, module), "",
                      std::max(rating, Rating::unknown)};
}

constexpr std::array kMarks = {
    Mark{"!!python/", yaml_tag},
    Mark{"tag:yaml.org,2002:python/", yaml_tag},
    Mark{"!!", short_tag},
    Mark{"!<", full_tag},
    Mark{"\n%TAG", tag_directive},
    Mark{"_target_", hydra_target},
    Mark{"&", anchored_target},
    Mark{"${oc.decode:", [](std::string_view) { return always("a value that is computed (oc.decode)"); }},
    Mark{"${oc.create:", [](std::string_view) { return always("a value that is computed (oc.create)"); }},
    Mark{"\"auto_map\"",
         [](std::string_view rest) {
           return value_behind(rest).starts_with('{')
                      ? always("auto_map, which names code that trust_remote_code runs")
                      : Finding();
         }},
    Mark{"\"custom_pipelines\"",
         [](std::string_view rest) {
           return value_behind(rest).starts_with('{')
                      ? always("custom_pipelines, which name code that trust_remote_code runs")
                      : Finding();
         }},
    Mark{"_implementation", kernel_repository},
    Mark{"\"activation_function\"",
         [](std::string_view rest) { return named_code("activation_function", rest, {"torch.nn."}); }},
    Mark{"\"activation_fn\"",
         [](std::string_view rest) { return named_code("activation_fn", rest, {"torch.nn."}); }},
    Mark{"\"sbert_ce_default_activation_function\"",
         [](std::string_view rest) { return named_code("activation function", rest, {"torch.nn."}); }},
    Mark{"\"parent_library\"",
         [](std::string_view rest) {
           const std::string_view value = value_behind(rest);
           const std::string_view name = value.substr(0, value.find_first_of("\\\"',} \r\n"));
           const std::string_view root = name.substr(0, name.find('.'));
           const bool fine = root.empty() || root == "null" || root == "transformers" || root == "torch" ||
                             root == "diffusers" || root == "peft";
           return fine ? Finding() : always(fmt::format("parent_library {}", name));
         }},
    Mark{"\"class_name\"", keras_class},
    Mark{"\"module\"", keras_module},
    Mark{"\"__lambda__\"",
         [](std::string_view) { return always("a Python lambda of Keras", Rating::dangerous); }},
};

/// sentence-transformers makes the modules of `modules.json` by these.
constexpr Mark kModuleType{
    "\"type\"", [](std::string_view rest) { return named_code("module", rest, {"sentence_transformers."}); }};

/// diffusers makes the parts of a pipeline by these: `"unet": ["diffusers", "UNet2DConditionModel"]`.
constexpr Mark kPipelinePart{
    "[", [](std::string_view rest) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
      if (!rest.starts_with('"')) return Finding();
      const std::string_view name = name_at(rest.substr(1));
      const bool fine = name == "diffusers" || name == "transformers" || name == "onnxruntime" ||
                        name == "flax" || name == "stable_diffusion";
      return name.empty() || fine ? Finding() : always(fmt::format("a part of a pipeline from {}", name));
    }};

}  // namespace

Finding always(std::string_view what, Rating rating) {
  return ContentFacts{std::string(what), "", rating};
}

std::span<const Mark> loader_marks() {
  return kMarks;
}

const Mark* mark_of_file(std::string_view name) {
  if (is_named(name, {"modules.json"})) return &kModuleType;
  return is_named(name, {"model_index.json"}) ? &kPipelinePart : nullptr;
}

/// `%TAG ! tag:yaml.org,2002:python/` gives a tag of Python another name.
Finding tag_directive(std::string_view rest) {
  const std::string line = without_percents(rest.substr(0, rest.find_first_of("\r\n")));
  const bool python = line.find("tag:yaml.org,2002:") != std::string::npos;
  return always("YAML tags of its own", python ? Rating::dangerous : Rating::unknown);
}

}  // namespace msprobe::inspect
