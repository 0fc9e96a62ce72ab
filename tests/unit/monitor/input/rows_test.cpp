// SPDX-License-Identifier: Apache-2.0
#include "monitor/input/rows.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/error.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::monitor_rows_test {

using namespace msprobe;
using namespace msprobe::monitor;

namespace {

std::string optional_text(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "-";
}

struct Read {
  std::vector<std::string> rows;
  std::string left_out;
};

/// Each row as quantity|stage|name|step|micro step|values.
Read read(const std::string& text, const std::string& prefix) {
  MonitorRows rows(memory_source(text, "file.csv"), prefix);
  Read result;
  for (MonitorRow row; rows.next(row);) {
    std::string line = std::string(row.quantity) + "|" + optional_text(row.stage) + "|" +
                       std::string(row.name) + "|" + std::to_string(row.step) + "|" +
                       optional_text(row.micro_step) + "|";
    for (std::size_t i = 0; i < row.values.size(); ++i)
      line += rows.statistics()[i] + "=" +
              (is_no_number(row.values[i]) ? "none"
               : std::isnan(row.values[i]) ? "nan"
                                           : std::to_string(row.values[i])) +
              ";";
    if (row.absent) line += "absent";
    result.rows.push_back(line);
  }
  result.left_out = rows.left_out().sentence("file.csv");
  return result;
}

using Lines = std::vector<std::string>;

TEST_CASE("a cell without a number has no value, and is not NaN") {
  const Read read_back = read(
      "vpp_stage,name,step,norm,min,shape,dtype\n"
      "0,a,1,,text,[1],torch.float32\n"
      "0,a,2,nan,NaN,[1],torch.float32\n",
      "grad_reduced");
  CHECK(read_back.rows ==
        Lines{"grad_reduced|0|a|1|-|norm=none;min=none;", "grad_reduced|0|a|2|-|norm=nan;min=nan;"});
  CHECK(!is_no_number(std::nan("")));
}

TEST_CASE("rows of the first monitor have stage, name, step and micro step") {
  const Read read_back = read(
      "vpp_stage,name,step,micro_step,norm,min,shape,dtype\n"
      "0,layers.0.fc.input,1,0,inf,-0.5,\"[2, 3]\",torch.float32\n"
      "1,layers.0.fc.input,1,1,nan,nan,nan,nan\n"
      "0,b,2,0,True,7,[],torch.bool\n",
      "actv");
  CHECK(read_back.rows == Lines{"actv|0|layers.0.fc.input|1|0|norm=inf;min=-0.500000;",
                                "actv|1|layers.0.fc.input|1|1|norm=nan;min=nan;absent",
                                "actv|0|b|2|0|norm=1.000000;min=7.000000;"});
  CHECK(read_back.left_out.empty());
}

TEST_CASE("communication of the Python tool is read where its columns are shifted, one row a tensor") {
  // As in golden/monitor/ddp: the first statistic has the place of the name, further tensors run on.
  const Read read_back = read(
      "vpp_stage,name,step,norm,min,shape,dtype\n"
      "all_reduce,179.5,3,-1.0,nan,nan,nan,nan,nan,nan\n"
      "all_gather,1.0,3,0.0,nan,nan,2.0,0.5,nan,nan\n"
      "0,plain,3,4.0,5.0,[2],torch.float32\n",
      "other");
  CHECK(read_back.rows == Lines{"comm|-|all_reduce_0|3|-|norm=179.500000;min=-1.000000;",
                                "comm|-|all_gather_0|3|-|norm=1.000000;min=0.000000;",
                                "comm|-|all_gather_1|3|-|norm=2.000000;min=0.500000;",
                                "other|0|plain|3|-|norm=4.000000;min=5.000000;"});
}

TEST_CASE("communication in a separate file has an empty stage") {
  const Read read_back =
      read("vpp_stage,name,step,norm,shape,dtype\n,all_reduce/rank0/post_0,3,1.5,nan,nan\n", "comm");
  CHECK(read_back.rows == Lines{"comm|-|all_reduce/rank0/post_0|3|-|norm=1.500000;"});
}

TEST_CASE("rows of the second monitor get the first one's words, and its calls numbers") {
  const Read read_back = read(
      "vpp_stage,step,module_name,scope,min,norm\r\n"
      "-1,0,a.input.0,forward,1.0,2.0\r\n"
      "-1,0,a.input.0,forward,3.0,4.0\r\n"
      "-1,0,a.grad_input.0,backward,5.0,6.0\r\n"
      "-1,1,a.input.0,forward,7.0,8.0\r\n"
      "1,1,1:weight,param_origin,9.0,nan\r\n",
      "module");
  CHECK(read_back.rows == Lines{"actv|-|a.input.0|0|0|min=1.000000;norm=2.000000;",
                                "actv|-|a.input.0|0|1|min=3.000000;norm=4.000000;",
                                "actv_grad|-|a.grad_input.0|0|0|min=5.000000;norm=6.000000;",
                                "actv|-|a.input.0|1|0|min=7.000000;norm=8.000000;",
                                "param_origin|1|1:weight|1|-|min=9.000000;norm=nan;"});
}

TEST_CASE("micro steps of the second monitor count from 1, and of reduced gradients how many there were") {
  const Read read_back = read(
      "vpp_stage,step,module_name,scope,micro_step,norm\n"
      "-1,0,w,unreduced,1,1.0\n"
      "-1,0,w,unreduced,2,2.0\n"
      "-1,0,w,reduced,2,3.0\n",
      "weight_grad");
  CHECK(read_back.rows == Lines{"grad_unreduced|-|w|0|0|norm=1.000000;",
                                "grad_unreduced|-|w|0|1|norm=2.000000;",
                                "grad_reduced|-|w|0|-|norm=3.000000;"});
}

TEST_CASE("rows that do not fit are left out, and told") {
  const Read read_back = read(
      "vpp_stage,name,step,norm,min\n"
      "0,a,0,1.0\n"
      "0,a,x,1.0,2.0\n"
      "0,a,-1,1.0,2.0\n"
      "0,a,1.0,1.0,2.0\n"
      "0,a,2,1.0,2.0,3.0\n"
      "0,a,3,4.0,trunc",
      "grad_reduced");
  CHECK(read_back.rows == Lines{"grad_reduced|0|a|1|-|norm=1.000000;min=2.000000;",
                                "grad_reduced|0|a|3|-|norm=4.000000;min=none;"});
  CHECK(read_back.left_out == "file.csv: 4 rows were skipped, first line 2: fewer fields than the header");
}

TEST_CASE("what is no table of a monitor is refused") {
  const auto refusal = [](const std::string& text) {
    return test::complaint_about("file.csv", [&] { read(text, "actv"); });
  };
  CHECK(refusal("") == "file.csv: is empty: a monitor's table has a header");
  CHECK(refusal("a,b,c\n1,2,3\n") ==
        "file.csv: is not a table of a training monitor: it lacks the columns vpp_stage, name and step");
  CHECK(refusal("vpp_stage,name,step,norm,norm\n") == "file.csv: has two columns norm");
  CHECK(refusal("vpp_stage,name,step,norm\n0,\"a,0,1\n") == "file.csv: line 2: a quote is not closed");
}

}  // namespace
}  // namespace msprobe::monitor_rows_test
