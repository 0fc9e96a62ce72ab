// SPDX-License-Identifier: Apache-2.0
// Dumps of the ranks of a training that is split in every way that graph_visualize merges, one fact or more
// of which is wrong: a name, what a node belongs to, a number, a group of ranks, where a file ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "fuzz_facts.hpp"
#include "graph/output.hpp"
#include "support/json_writer.hpp"

namespace msprobe {

struct ModelSplit {
  std::size_t tp = 1;
  std::size_t pp = 1;
  std::size_t dp = 1;
  std::size_t vpp = 1;
  std::size_t layers = 1;  // of a stage's chunk
  std::size_t calls = 1;   // of each module
  bool backward = false;
  std::size_t ranks() const { return tp * pp * dp; }
};

/// The files that a rank with these coordinates writes.
class RankFiles {
 public:
  RankFiles(Facts& facts, const ModelSplit& split, std::size_t rank)
      : facts_(facts), split_(split), rank_(rank) {
    for (std::size_t call = 0; call < split.calls; ++call) {
      add_direction("forward", call);
      if (split.backward) add_direction("backward", call);
    }
  }

  void write(const std::string& folder) {
    std::filesystem::create_directories(folder);
    put(folder + "/dump.json", dump());
    put(folder + "/construct.json", construct());
    put(folder + "/stack.json", stacks());
  }

 private:
  struct Node {
    std::string name;
    std::string parent;  // empty: none
    bool is_module;
  };

  std::size_t stage() const { return rank_ / (split_.tp * split_.dp); }
  std::size_t shard() const { return rank_ % split_.tp; }

  void add_direction(const std::string& direction, std::size_t call) {
    const std::string end = "." + direction + "." + std::to_string(call);
    const auto api = [&](const std::string& name, const std::string& parent) {
      nodes_.push_back({name + "." + std::to_string(apis_++) + "." + direction, parent, false});
    };
    if (stage() > 0) api("Distributed.recv", "");
    for (std::size_t chunk = 0; chunk < split_.vpp; ++chunk) {
      const std::string head =
          split_.vpp > 1 ? "Module." + std::to_string(chunk) + ".module" : "Module.module";
      const std::string top = head + ".Stage" + end;
      const std::string decoder = head + ".decoder.Decoder" + end;
      nodes_.push_back({top, "", true});
      nodes_.push_back({decoder, top, true});
      for (std::size_t i = 0; i < split_.layers; ++i) {
        const std::string layer = head + ".decoder.layers." + std::to_string(i);
        const std::string whole = layer + ".Layer" + end;
        nodes_.push_back({whole, decoder, true});
        for (const auto* linear : {".fc1.ColumnParallelLinear", ".fc2.RowParallelLinear"}) {
          nodes_.push_back({layer + linear + end, whole, true});
          api("Torch.matmul", layer + linear + end);
        }
        api("Distributed.all_reduce", nodes_.back().parent);
      }
    }
    api("Torch.square", "");
    if (stage() + 1 < split_.pp) api("Distributed.send", "");
  }

  std::string tensor(std::size_t seed, bool split) {
    const std::string value = std::to_string(seed % 7 + (split ? shard() : 0)) + ".5";
    JsonWriter json;
    json.open_object();
    json.member("type", facts_.text("torch.Tensor"));
    json.member("dtype", facts_.text("torch.float32"));
    json.key("shape");
    json.raw(facts_.json("[2, " + std::to_string(split ? 4 : 4 * split_.tp) + "]"));
    for (const auto* statistic : {"Max", "Min", "Mean", "Norm"}) {
      json.key(facts_.text(statistic));
      json.raw(facts_.json(value));
    }
    json.member("requires_grad", false);
    json.close();
    return json.take();
  }

  std::string group() {
    const std::size_t first = rank_ - shard();
    JsonWriter json;
    json.open_object();
    json.member("type", "torch.ProcessGroup");
    json.open_list("group_ranks");
    const std::size_t size = facts_.count(split_.tp);
    for (std::size_t i = 0; i < size; ++i) json.value(facts_.number(static_cast<std::int64_t>(first + i)));
    json.close();
    json.close();
    return json.take();
  }

  std::string peer(bool next) {
    const std::size_t stride = split_.tp * split_.dp;
    const auto rank = static_cast<std::int64_t>(next ? rank_ + stride : rank_ - stride);
    return "{\"type\": \"int\", \"value\": " + std::to_string(facts_.number(rank)) + "}";
  }

  std::string entry(const Node& node, std::size_t number) {
    const bool sum = node.name.starts_with("Distributed.all_reduce");
    const bool sends = node.name.starts_with("Distributed.send");
    const bool receives = node.name.starts_with("Distributed.recv");
    JsonWriter json;
    json.open_object();
    json.open_list(facts_.text("input_args"));
    json.element();
    json.raw(tensor(number, !sum));
    json.close();
    json.open_object(facts_.text("input_kwargs"));
    if (sum || sends || receives) {
      json.key(facts_.text(sum ? "group" : sends ? "dst" : "src"));
      json.raw(facts_.json(sum ? group() : peer(sends)));
    }
    json.close();
    json.open_list(facts_.text("output"));
    const std::size_t outputs = facts_.count(1);
    for (std::size_t i = 0; i < outputs; ++i) {
      json.element();
      json.raw(facts_.json(tensor(number + 1, node.name.find("Column") != std::string::npos)));
    }
    json.close();
    if (node.is_module && node.name.find("Linear") != std::string::npos) {
      json.open_object("parameters");
      json.key(facts_.text("weight"));
      json.raw(tensor(number + 2, true));
      json.close();
    }
    json.close();
    return json.take();
  }

  std::string dump() {
    JsonWriter json;
    json.open_object();
    json.member("task", facts_.text("statistics"));
    json.member("level", facts_.text("mix"));
    json.member("framework", facts_.text("pytorch"));
    json.open_object(facts_.text("data"));
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      json.key(facts_.text(nodes_[i].name));
      json.raw(facts_.json(entry(nodes_[i], i)));
    }
    json.close();
    json.close();
    return json.take();
  }

  std::string construct() {
    JsonWriter json;
    json.open_object();
    for (const Node& node : nodes_) {
      json.key(facts_.text(node.name));
      const std::string parent = facts_.text(node.parent);
      if (parent.empty()) {
        json.raw(facts_.json("null"));
      } else {
        json.value(parent);
      }
    }
    json.close();
    return json.take();
  }

  std::string stacks() {
    JsonWriter json;
    json.open_object();
    for (std::size_t i = 0; i < 2; ++i) {
      json.open_list(facts_.text(std::to_string(i)));
      json.element();
      json.open_list();
      for (std::size_t k = i; k < nodes_.size(); k += 2) json.value(nodes_[k].name);
      json.value(facts_.text(nodes_.front().name));
      json.close();
      json.element();
      json.raw(facts_.json(R"(["File /train.py, line 3, in step, \n run"])"));
      json.close();
    }
    json.close();
    return json.take();
  }

  void put(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << facts_.content(content);
  }

  Facts& facts_;
  const ModelSplit& split_;
  std::size_t rank_;
  std::size_t apis_ = 0;
  std::vector<Node> nodes_;
};

/// As the command does for --python-rules.
inline void take_python_rules(graph::GraphOptions& options) {
  options.data.python_values = true;
  options.pair.python_values = true;
  options.pair.python = measuring::python_node_rules();
  options.origins = false;
}

inline void write_ranks(Facts& facts, const ModelSplit& split, const std::string& folder) {
  for (std::size_t rank = 0; rank < split.ranks(); ++rank)
    RankFiles(facts, split, rank).write(folder + "/rank" + std::to_string(rank));
}

}  // namespace msprobe
