// SPDX-License-Identifier: Apache-2.0
// Small dumps for the tests. A letter gives the values of a tensor: c clean, n NaN, i Inf; several letters,
// several tensors.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anomaly/search.hpp"

namespace msprobe::anomaly {

inline std::string tensor_json(char kind) {
  const std::string max = kind == 'n' ? "NaN" : kind == 'i' ? "Infinity" : "1.0";
  const std::string min = kind == 'n' ? "NaN" : "-1.0";
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": )" + max +
         R"(, "Min": )" + min + R"(, "Mean": 0.0, "Norm": 2.0})";
}

inline std::string tensors(std::string_view kinds) {
  std::string out;
  for (const char kind : kinds) out += (out.empty() ? "" : ", ") + tensor_json(kind);
  return "[" + out + "]";
}

inline std::string integer(int value) {
  return R"({"type": "int", "value": )" + std::to_string(value) + "}";
}
inline std::string group(const std::string& ranks) {
  return R"({"type": "torch.ProcessGroup", "group_ranks": )" + ranks + "}";
}

/// An entry; `keywords` is the inside of input_kwargs.
inline std::string entry(const std::string& name, std::string_view in, std::string_view out,
                         const std::string& keywords = "") {
  return "\"" + name + R"(": {"input_args": )" + tensors(in) + R"(, "input_kwargs": {)" + keywords +
         R"(}, "output": )" + tensors(out) + "}";
}

inline std::string all_reduce(int count, std::string_view in, std::string_view out,
                              const std::string& ranks) {
  return entry("Distributed.all_reduce." + std::to_string(count) + ".forward", in, out,
               "\"group\": " + group(ranks));
}
inline std::string send(int count, std::string_view in, int to) {
  return entry("Distributed.send." + std::to_string(count) + ".forward", in, in, "\"dst\": " + integer(to));
}
inline std::string recv(int count, std::string_view out, int from) {
  return entry("Distributed.recv." + std::to_string(count) + ".forward", "c", out,
               "\"src\": " + integer(from));
}

/// batch_isend_irecv of (kind of tensor, sends, peer).
struct Part {
  char kind;
  bool sends;
  int peer;
};
inline std::string batch(int count, const std::vector<Part>& parts) {
  std::string in;
  for (const Part& part : parts) {
    in += (in.empty() ? "" : ", ") +
          (R"({"class_type": "torch.distributed.P2POp", "tensor": )" + tensor_json(part.kind)) +
          R"(, "op": ")" + (part.sends ? "isend" : "irecv") + R"(", "peer": )" + std::to_string(part.peer) +
          R"(, "tag": 0, "group_id": "0a"})";
  }
  return "\"Distributed.batch_isend_irecv." + std::to_string(count) + R"(.forward": {"input_args": [[)" + in +
         R"(]], "input_kwargs": {}, "output": [[)" + in + "]]}";
}

inline std::string dump_of(const std::vector<std::string>& entries) {
  std::string data;
  for (const std::string& each : entries) data += (data.empty() ? "" : ",\n") + each;
  return R"({"task": "statistics", "level": "L1", "framework": "pytorch", "data": {)" + data + "}}";
}

inline RankInput rank_of(std::int64_t number, const std::vector<std::string>& entries) {
  RankInput rank;
  rank.number = number;
  rank.json = "rank" + std::to_string(number) + "/dump.json";
  rank.scan = scan_rank(*memory_source(dump_of(entries), rank.json), default_rules());
  return rank;
}

/// "1 Torch.exp.0.forward, …" of roots.
inline std::string told(const std::vector<RankInput>& ranks, const std::vector<AnomalyRoot>& roots) {
  std::string out;
  for (const AnomalyRoot& root : roots)
    out += (out.empty() ? "" : ", ") + std::to_string(ranks[root.rank].number) + " " + root.entry.name;
  return out;
}

}  // namespace msprobe::anomaly
