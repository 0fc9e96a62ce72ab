// SPDX-License-Identifier: Apache-2.0
// Records through the C interface into a scratch folder, and reads back what came out.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "msprobe/collector.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::test {

using Json = nlohmann::ordered_json;

inline std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

/// A session of rank 0, with `section` as the section of its task.
struct Recording {
  /// Both are JSON objects.
  explicit Recording(const std::string& settings = "{}", const std::string& section_text = "{}") {
    const Json section = Json::parse(section_text);
    Json config = {
        {"task", "statistics"}, {"level", "mix"}, {"dump_path", folder.path()}, {"risk_level", "ALL"}};
    config.update(Json::parse(settings));
    config[config["task"].get<std::string>()] = section;
    if (!section.value("list", Json::array()).empty() || !section.value("scope", Json::array()).empty())
      config.erase("risk_level");
    const msprobe_status status = msprobe_session_open(nullptr, config.dump().c_str(), nullptr, &session);
    REQUIRE_MESSAGE(status == MSPROBE_OK, msprobe_last_error());
    REQUIRE(msprobe_set_rank(session, 0) == MSPROBE_OK);
  }
  ~Recording() { msprobe_session_close(session); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  msprobe_decision start() {
    msprobe_decision decision = MSPROBE_NOT_NOW;
    CHECK(msprobe_start(session, &decision, nullptr) == MSPROBE_OK);
    return decision;
  }
  void stop() { CHECK(msprobe_stop(session) == MSPROBE_OK); }
  void step() { CHECK(msprobe_step(session) == MSPROBE_OK); }

  static std::uint32_t number(const char* name) {
    std::uint32_t id = 0;
    REQUIRE(msprobe_intern(name, &id) == MSPROBE_OK);
    return id;
  }
  msprobe_event enter(const char* name) {
    const bool module = std::string_view(name).starts_with("Module.");
    msprobe_event event = {};
    CHECK(msprobe_enter(session, module ? MSPROBE_KIND_MODULE : MSPROBE_KIND_API, number(name), &event) >= 0);
    return event;
  }
  void leave(msprobe_event event) { CHECK(msprobe_leave(session, &event) >= 0); }
  Section section(const msprobe_event& event, msprobe_section which) {
    msprobe_builder* builder = nullptr;
    CHECK(msprobe_section_begin(session, &event, which, &builder) >= 0);
    return Section(builder);
  }
  void input(const msprobe_event& event, std::int64_t value = 1) { section(event, MSPROBE_INPUT).add(value); }
  void output(const msprobe_event& event, std::int64_t value = 2) {
    section(event, MSPROBE_OUTPUT).add(value);
  }

  /// A call that takes and gives a number.
  msprobe_event call(const char* name) {
    const msprobe_event event = enter(name);
    input(event);
    output(event);
    leave(event);
    return event;
  }
  msprobe_event backward(const msprobe_event& forward) {
    msprobe_event event = {};
    CHECK(msprobe_enter_backward(session, &forward, &event) >= 0);
    input(event);
    output(event);
    leave(event);
    return event;
  }
  void gradient(const char* module, const char* parameter, std::uint32_t expected = 0) {
    msprobe_builder* builder = nullptr;
    CHECK(msprobe_parameter_gradient(session, number(module), parameter, expected, &builder) >= 0);
    const std::array<std::int64_t, 1> shape = {2};
    const std::array<float, 2> values = {3, 4};
    Section(builder).add({.data = values.data(), .shape = shape});
  }

  std::string path(const std::string& file, int step = 0) const {
    return folder.path() + "/step" + std::to_string(step) + "/rank0/" + file;
  }
  Json json(const std::string& file, int step = 0) const { return Json::parse(read_file(path(file, step))); }
  Json data(int step = 0) const { return json("dump.json", step).at("data"); }
  std::vector<std::string> entries(int step = 0) const { return keys_of(data(step)); }

  ScratchDirectory folder;
  msprobe_session* session = nullptr;
};

}  // namespace msprobe::test
