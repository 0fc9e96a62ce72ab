// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "anomaly/search.hpp"
#include "dumps.hpp"

namespace msprobe::anomaly_root_search_test {

using namespace msprobe;
using namespace msprobe::anomaly;

namespace {

using Ranks = std::vector<RankInput>;

void ignore(Remark /*kind*/, const std::string& /*text*/) {}

std::vector<AnomalyRoot> search(const Ranks& ranks, bool all = false) {
  return search_roots(ranks, default_rules(), all, ignore);
}
std::string first(const Ranks& ranks) {
  return told(ranks, search(ranks));
}
std::string everything(const Ranks& ranks) {
  return told(ranks, search(ranks, true));
}
std::string path(const Ranks& ranks, const AnomalyRoot& root) {
  std::string out;
  for (const Reached& reached : root.path) {
    out += (out.empty() ? "" : ", ") + std::to_string(ranks[reached.rank].number) + " from " +
           std::to_string(ranks[reached.from].number) + " by " + reached.entry.name;
  }
  return out;
}

}  // namespace

TEST_CASE("a mask that goes no further is not blamed while there is something else") {
  const std::string mask = entry("Tensor.masked_fill.0.forward", "c", "i");
  const std::string consumed = entry("Functional.softmax.0.forward", "i", "c");
  const std::string passed_on = entry("Torch.add.0.forward", "i", "i");
  const std::string fault = entry("Torch.log.0.forward", "c", "n");
  CHECK(first({rank_of(0, {mask, consumed, fault})}) == "0 Torch.log.0.forward");
  CHECK(first({rank_of(0, {mask, passed_on, fault})}) == "0 Tensor.masked_fill.0.forward");
  CHECK(first({rank_of(0, {mask, fault})}) == "0 Tensor.masked_fill.0.forward");
  const Ranks only{rank_of(0, {mask, consumed})};
  const auto roots = search(only);
  CHECK(told(only, roots) == "0 Tensor.masked_fill.0.forward");
  REQUIRE(roots.size() == 1);
  CHECK(roots[0].contained);
  CHECK(roots[0].phase == RootPhase::otherwise);
}

TEST_CASE("an Inf that a cast takes away hides no later fault") {
  const std::string harmless = entry("Torch.log.0.forward", "c", "i");
  const std::string scaled = entry("Tensor.__mul__.0.forward", "i", "i");
  const std::string clean = entry("Functional.linear.0.forward", "c", "c");
  const std::string fault = entry("Torch.log.1.forward", "c", "n");
  const std::string bad = entry("Functional.linear.1.forward", "n", "n");
  CHECK(first({rank_of(0, {harmless, scaled, clean, fault, bad})}) == "0 Torch.log.1.forward");
  // Nothing else is wrong, but nothing was harmed.
  const Ranks only{rank_of(0, {harmless, scaled, clean})};
  const auto roots = search(only);
  REQUIRE(roots.size() == 1);
  CHECK(told(only, roots) == "0 Torch.log.0.forward");
  CHECK(roots[0].contained);
  // It goes on behind what was clean.
  CHECK(first({rank_of(0, {harmless, scaled, clean, entry("Torch.add.0.forward", "i", "i"), fault})}) ==
        "0 Torch.log.0.forward");
  // NaN is no mask, wherever it ends.
  CHECK(first({rank_of(0, {entry("Torch.log.0.forward", "c", "n"), clean, fault, bad, clean})}) ==
        "0 Torch.log.0.forward");
}

TEST_CASE("a mask beside the value that goes into communication") {
  const Ranks ranks{
      rank_of(0, {all_reduce(0, "c", "c", "[0, 1]"), entry("Tensor.masked_fill.0.forward", "c", "i"),
                  entry("Functional.softmax.0.forward", "i", "c"), entry("Torch.log.0.forward", "c", "n"),
                  all_reduce(1, "n", "n", "[0, 1]")}),
      rank_of(1, {all_reduce(0, "c", "c", "[0, 1]"), all_reduce(1, "c", "n", "[0, 1]")})};
  CHECK(first(ranks) == "0 Torch.log.0.forward");
}

TEST_CASE("NaN from outside is named if nothing else is to blame; Inf alone is not") {
  const Ranks nan{
      rank_of(0, {entry("Torch.add.0.forward", "n", "n"), entry("Torch.mul.0.forward", "n", "n")})};
  const auto roots = search(nan);
  CHECK(told(nan, roots) == "0 Torch.add.0.forward");
  REQUIRE(roots.size() == 1);
  CHECK(roots[0].kind == RootKind::external);
  CHECK(first({rank_of(0, {entry("Torch.add.0.forward", "i", "i")})}).empty());
  CHECK(first({rank_of(0, {entry("Torch.isnan.0.forward", "n", "c")})}).empty());
  CHECK(first({rank_of(0, {entry("Torch.add.0.forward", "n", "n"),
                           entry("Torch.log.0.forward", "c", "i")})}) == "0 Torch.log.0.forward");
  // NaN that an operation left in its memory is not from outside.
  CHECK(first({rank_of(
                  0, {entry("Torch.empty.0.forward", "", "n"), entry("Tensor.copy_.0.forward", "nc", "n")})})
            .empty());
}

TEST_CASE("Inf from outside that goes into communication takes the blame off the communication") {
  const Ranks ranks{rank_of(0, {entry("Torch.add.0.forward", "i", "i"), all_reduce(0, "i", "i", "[0, 1]")}),
                    rank_of(1, {all_reduce(0, "c", "i", "[0, 1]")})};
  const auto roots = search(ranks);
  CHECK(told(ranks, roots) == "0 Torch.add.0.forward");
  REQUIRE(roots.size() == 1);
  CHECK(roots[0].kind == RootKind::external);
}

TEST_CASE("a communication whose own input is the first bad value of its rank") {
  const Ranks ranks{rank_of(0, {all_reduce(0, "c", "c", "[0, 1]"), all_reduce(1, "n", "n", "[0, 1]")}),
                    rank_of(1, {all_reduce(0, "c", "c", "[0, 1]"), all_reduce(1, "c", "n", "[0, 1]")})};
  const auto roots = search(ranks);
  CHECK(told(ranks, roots) == "0 Distributed.all_reduce.1.forward");
  REQUIRE(roots.size() == 1);
  CHECK(roots[0].kind == RootKind::external);
}

TEST_CASE("NaN out of Inf is named if nothing else is to blame") {
  const Ranks ranks{
      rank_of(0, {entry("Torch.add.0.forward", "i", "i"), entry("Functional.softmax.0.forward", "i", "n"),
                  entry("Torch.mul.0.forward", "n", "n")})};
  const auto roots = search(ranks);
  CHECK(told(ranks, roots) == "0 Functional.softmax.0.forward");
  REQUIRE(roots.size() == 1);
  CHECK(roots[0].kind == RootKind::inf_to_nan);
}

TEST_CASE("a bad value that passes by one communication and goes into the next") {
  const Ranks ranks{rank_of(0, {all_reduce(0, "c", "c", "[0, 1]"), entry("Torch.log.0.forward", "c", "n"),
                                all_reduce(1, "c", "c", "[0, 1]"), all_reduce(2, "n", "n", "[0, 1]")}),
                    rank_of(1, {all_reduce(0, "c", "c", "[0, 1]"), all_reduce(1, "c", "c", "[0, 1]"),
                                all_reduce(2, "c", "n", "[0, 1]")})};
  CHECK(first(ranks) == "0 Torch.log.0.forward");
}

TEST_CASE("a bad value that an earlier communication brought is explained there") {
  const Ranks ranks{rank_of(0, {all_reduce(0, "c", "c", "[0, 1]"), entry("Torch.log.0.forward", "c", "n"),
                                all_reduce(1, "n", "n", "[0, 1]"), all_reduce(2, "n", "n", "[0, 1]")}),
                    rank_of(1, {all_reduce(0, "c", "c", "[0, 1]"), all_reduce(1, "c", "n", "[0, 1]"),
                                all_reduce(2, "n", "n", "[0, 1]")})};
  const auto roots = search(ranks, true);
  CHECK(told(ranks, roots) == "0 Torch.log.0.forward");
  REQUIRE(roots.size() == 1);
  CHECK(path(ranks, roots[0]) == "1 from 0 by Distributed.all_reduce.1.forward");
}

TEST_CASE("bad values that never go into communication are found after it") {
  const Ranks ranks{rank_of(0, {all_reduce(0, "c", "c", "[0, 1]"), entry("Torch.log.0.forward", "c", "n"),
                                all_reduce(1, "c", "c", "[0, 1]")}),
                    rank_of(1, {all_reduce(0, "c", "c", "[0, 1]"), all_reduce(1, "c", "c", "[0, 1]")})};
  const auto roots = search(ranks);
  CHECK(told(ranks, roots) == "0 Torch.log.0.forward");
  CHECK(roots[0].phase == RootPhase::after);
}

TEST_CASE("calls are matched by exact group and running number") {
  // Rank 0 talks to rank 1 in between; the n-th calls on {0, 2} are not the n-th calls of all_reduce.
  const Ranks ranks{rank_of(0, {all_reduce(0, "c", "c", "[0, 2]"), all_reduce(1, "c", "c", "[0, 1]"),
                                entry("Torch.log.0.forward", "c", "n"), all_reduce(2, "n", "n", "[0, 2]")}),
                    rank_of(1, {all_reduce(0, "c", "c", "[0, 1]")}),
                    rank_of(2, {all_reduce(0, "c", "c", "[2, 0]"), all_reduce(1, "c", "n", "[0, 2]")})};
  const auto roots = search(ranks);
  CHECK(told(ranks, roots) == "0 Torch.log.0.forward");
  REQUIRE(roots.size() == 1);
  CHECK(path(ranks, roots[0]) == "2 from 0 by Distributed.all_reduce.1.forward");
  const dump::CommGraph graph(communication_of(ranks), default_rules().names_source);
  CHECK_FALSE(graph.contradictory());
  CHECK(graph.exchanges().size() == 3);
  CHECK(graph.giving_layer(2) == 2);
  CHECK(graph.done_layer(graph.first(1)) == 1);
}

TEST_CASE("no group and the group of all dumped ranks are the same") {
  const Ranks ranks{rank_of(0, {entry("Distributed.all_reduce.0.forward", "n", "n")}),
                    rank_of(1, {all_reduce(0, "c", "n", "[1, 0]")})};
  CHECK(dump::CommGraph(communication_of(ranks), default_rules().names_source).exchanges().size() == 1);
}

TEST_CASE("the source of a broadcast, by keyword, by place in the group and by position") {
  const auto broadcast = [](const std::string& in, const std::string& out, const std::string& keywords) {
    return entry("Distributed.broadcast.0.forward", in, out, keywords);
  };
  const std::string in_group = "\"group\": " + group("[2, 3]");
  for (const std::string& keywords :
       {"\"src\": " + integer(3) + ", " + in_group, "\"group_src\": " + integer(1) + ", " + in_group}) {
    CAPTURE(keywords);
    const Ranks ranks{rank_of(2, {broadcast("n", "n", keywords)}),
                      rank_of(3, {broadcast("c", "c", keywords)})};
    const dump::CommGraph graph(communication_of(ranks), default_rules().names_source);
    REQUIRE(graph.exchanges().size() == 1);
    CHECK(graph.exchanges()[0].senders == std::vector<std::size_t>{1});
    CHECK(graph.exchanges()[0].receivers == std::vector<std::size_t>{0, 1});
  }
  const std::string positional = R"("Distributed.broadcast.0.forward": {"input_args": [null, )" +
                                 tensor_json('c') + ", " + integer(0) + R"(], "output": []})";
  const Ranks ranks{rank_of(0, {positional}), rank_of(1, {positional})};
  const dump::CommGraph graph(communication_of(ranks), default_rules().names_source);
  CHECK(graph.exchanges()[0].senders == std::vector<std::size_t>{0});
}

TEST_CASE("transfers in batches: a pipeline whose batches overlap") {
  // Rank 0 sends x1, then sends x2 while it takes g1 back; rank 1 takes x1, then sends g1 while it takes x2.
  const auto ranks = [](char g1) {
    const std::string g(1, g1);
    return Ranks{rank_of(0, {batch(0, {{'c', true, 1}}), batch(1, {{'c', true, 1}, {g1, false, 1}}),
                             entry("Torch.mul.0.forward", g, g), batch(2, {{g1, true, 2}})}),
                 rank_of(1, {batch(0, {{'c', false, 0}}), entry("Torch.log.0.forward", "c", g),
                             batch(1, {{g1, true, 0}, {'c', false, 0}})}),
                 rank_of(2, {batch(0, {{g1, false, 0}}), entry("Torch.add.0.forward", g, g)})};
  };
  const Ranks bad = ranks('n');
  CHECK_FALSE(dump::CommGraph(communication_of(bad), default_rules().names_source).contradictory());
  const auto roots = search(bad);
  CHECK(told(bad, roots) == "1 Torch.log.0.forward");
  CHECK(path(bad, roots[0]) ==
        "0 from 1 by Distributed.batch_isend_irecv.1.forward, 2 from 0 by "
        "Distributed.batch_isend_irecv.0.forward");
  CHECK(search(ranks('c')).empty());
}

TEST_CASE("calls that contradict each other still give an answer") {
  const std::string a = entry("Distributed.all_reduce.0.forward", "c", "c", "\"group\": " + group("[0, 1]"));
  const std::string b =
      entry("Distributed.all_gather.0.forward", "cc", "cc", "\"group\": " + group("[0, 1]"));
  const Ranks ranks{
      rank_of(0, {a, b, entry("Torch.log.0.forward", "c", "n"), all_reduce(1, "n", "n", "[0, 1]")}),
      rank_of(1, {b, a, all_reduce(1, "c", "n", "[0, 1]")})};
  const dump::CommGraph graph(communication_of(ranks), default_rules().names_source);
  CHECK(graph.contradictory());
  CHECK(graph.giving_layer(2) == 2);
  CHECK(first(ranks) == "0 Torch.log.0.forward");
}

TEST_CASE("a receiver without its sender is blamed, and the missing rank told") {
  const Ranks ranks{rank_of(1, {recv(0, "c", 0), recv(1, "n", 0)}),
                    rank_of(2, {all_reduce(0, "c", "c", "[2, 5]")})};
  const auto roots = search(ranks);
  CHECK(told(ranks, roots) == "1 Distributed.recv.1.forward");
  REQUIRE(roots.size() == 1);
  CHECK(roots[0].kind == RootKind::communication);
  CHECK(roots[0].absent_ranks == std::vector<std::int64_t>{0});
}

TEST_CASE("a member of the group that could not be read may hold the origin") {
  RankInput broken;
  broken.number = 2;
  broken.failure = "truncated";
  for (const std::string& call :
       {all_reduce(0, "c", "n", "[0, 1, 2]"), entry("Distributed.all_reduce.0.forward", "c", "n")}) {
    const Ranks ranks{rank_of(0, {call}), rank_of(1, {call}), broken};
    const auto roots = search(ranks);
    CHECK(told(ranks, roots) == "0 Distributed.all_reduce.0.forward");
    REQUIRE(roots.size() == 1);
    CHECK(roots[0].absent_ranks == std::vector<std::int64_t>{2});
    CHECK(dump::CommGraph(communication_of(ranks), default_rules().names_source).uneven().empty());
  }
}

TEST_CASE("different numbers of calls on one group are reported") {
  const std::string call = all_reduce(0, "c", "c", "[0, 1]");
  const std::string other = all_reduce(1, "c", "c", "[0, 1]");
  const auto uneven = [](const Ranks& ranks) {
    return dump::CommGraph(communication_of(ranks), default_rules().names_source).uneven();
  };
  CHECK(uneven({rank_of(0, {call, other}), rank_of(1, {call, other})}).empty());
  CHECK(uneven({rank_of(0, {call}), rank_of(1, {call, other})}) ==
        "calls of all_reduce on one group: 2 on rank 1, 1 on rank 0");
  CHECK(uneven({rank_of(0, {send(0, "c", 1), send(1, "c", 1)}), rank_of(1, {recv(0, "c", 0)})}) ==
        "transfers from rank 0 to rank 1: 2 sent, 1 received");
  // Nothing is matched wrongly where a rank recorded none.
  CHECK(uneven({rank_of(0, {call, other})}).empty());
  CHECK(uneven({rank_of(0, {send(0, "c", 1), send(1, "c", 7)}), rank_of(1, {recv(0, "c", 0)})}).empty());
}

TEST_CASE("what there is to say on the way comes in its order, doubts before what they are about") {
  const auto said = [](const Ranks& ranks) {
    std::vector<std::pair<Remark, std::string>> list;
    const Tell tell = [&](Remark kind, const std::string& text) { list.emplace_back(kind, text); };
    search_roots(ranks, default_rules(), false, tell);
    std::string out;
    for (const auto& [kind, text] : list) {
      out += kind == Remark::warning ? 'w' : 'p';
      for (const char* word : {"before", "during", "after", "1 on rank 0"})
        if (text.find(word) != std::string::npos) out += ":" + std::string(word);
      out += ' ';
    }
    return out;
  };
  const std::string call = all_reduce(0, "c", "c", "[0, 1]");
  const std::string other = all_reduce(1, "c", "c", "[0, 1]");
  const Ranks uneven{rank_of(0, {call}), rank_of(1, {call, other})};
  CHECK(said(uneven) == "p:before p:during w:1 on rank 0 p:after ");
  const std::string fault = entry("Torch.log.0.forward", "c", "n");
  CHECK(said({rank_of(0, {fault}), rank_of(1, {})}) == "p:before ");
}

TEST_CASE("memory that a receiver found before the call hides nothing") {
  const std::string stale = entry("Distributed.recv.0.forward", "n", "n", "\"src\": " + integer(0));
  const Ranks ranks{rank_of(0, {all_reduce(0, "c", "c", "[0, 1]"), entry("Torch.log.0.forward", "c", "n"),
                                send(0, "n", 1)}),
                    rank_of(1, {all_reduce(0, "c", "c", "[0, 1]"), stale})};
  const auto roots = search(ranks, true);
  CHECK(told(ranks, roots) == "0 Torch.log.0.forward");
  CHECK(path(ranks, roots[0]) == "1 from 0 by Distributed.recv.0.forward");
}

TEST_CASE("all: independent origins in the order of time, consequences left out") {
  const auto calm = [](int count, const std::string& ranks) { return all_reduce(count, "c", "c", ranks); };
  const Ranks ranks{rank_of(0, {calm(0, "[0, 1]"), entry("Torch.log.0.forward", "c", "n"),
                                all_reduce(1, "n", "n", "[0, 1]"), entry("Torch.exp.0.forward", "c", "i")}),
                    rank_of(1, {calm(0, "[0, 1]"), all_reduce(1, "c", "n", "[0, 1]"),
                                entry("Torch.div.0.forward", "c", "n")}),
                    rank_of(2, {entry("Torch.sqrt.0.forward", "c", "n"), all_reduce(0, "n", "n", "[2, 3]")}),
                    rank_of(3, {all_reduce(0, "c", "n", "[2, 3]")})};
  CHECK(first(ranks) == "2 Torch.sqrt.0.forward");
  CHECK(everything(ranks) == "2 Torch.sqrt.0.forward, 0 Torch.log.0.forward");
}

TEST_CASE("all: a fault beside NaN from outside is a separate origin") {
  CHECK(everything(
            {rank_of(0, {entry("Torch.add.0.forward", "n", "n"), entry("Torch.log.0.forward", "c", "i")})}) ==
        "0 Torch.add.0.forward, 0 Torch.log.0.forward");
}

TEST_CASE("ties go to the computation, then to the lower rank") {
  const Ranks ranks{rank_of(3, {all_reduce(0, "c", "c", "[3, 7]"), all_reduce(1, "c", "i", "[3, 7]")}),
                    rank_of(7, {all_reduce(0, "c", "c", "[3, 7]"), all_reduce(1, "c", "i", "[3, 7]")})};
  CHECK(first(ranks) == "3 Distributed.all_reduce.1.forward");
}

TEST_CASE("MindSpore's communication counts too") {
  const auto reduce = [](const char* in, const char* out) {
    return entry("MintDistributed.all_reduce.0.forward", in, out);
  };
  const Ranks ranks{rank_of(0, {entry("Mint.log.0.forward", "c", "n"), reduce("n", "n")}),
                    rank_of(1, {reduce("c", "n")})};
  const auto roots = search(ranks);
  CHECK(told(ranks, roots) == "0 Mint.log.0.forward");
  CHECK(path(ranks, roots[0]) == "1 from 0 by MintDistributed.all_reduce.0.forward");
}

TEST_CASE("nothing to search") {
  CHECK(search({}).empty());
  CHECK(search({rank_of(0, {})}).empty());
}

}  // namespace msprobe::anomaly_root_search_test
