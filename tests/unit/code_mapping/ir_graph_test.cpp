// SPDX-License-Identifier: Apache-2.0
#include "code_mapping/ir_graph.hpp"

#include <doctest/doctest.h>

#include <string>

using msprobe::code_mapping::IrNode;
using msprobe::code_mapping::Nodes;

namespace {

// As MindSpore 2.7.0 writes it.
constexpr std::string_view kGraph = R"(# IR entry: @91_after_grad_247
%para1_args0: <Tensor[Float32], (2, 4)>

# In file base.py:597~599, 20~56/                    @jit/
subgraph @91_after_grad_247() {
  %0(equiv_5_CNode_203) = Load(%para2_fc.weight, UMonad[U]) cnode_primal_attrs: {unique_id: "3073"}
      : (<Ref[Tensor[Float32]], (3, 4)>, <UMonad, NoShape>) -> (<Tensor[Float32], (3, 4)>)
      # Fullname with scope: (Default/Load-op6)
  %1(equiv_4_x) = PrimFunc_MatMul(%para1_args0, %0, Bool(0), Bool(1)) cnode_attrs: {checkpoint: Bool(1)}
      : (<Tensor[Float32], (2, 4)>, <Bool, NoShape>) -> (<Tensor[Float32], (2, 3)>)
      # Fullname with scope: (Default/fc-Dense/MatMul-op2)
      # In file net.py:8~10, 4~32/    def construct(self, x):/
      # In file net.py:9, 21~28/        h = ops.relu(self.fc(x))/
  %8(CNode_237) = PrimFunc_MatMul(Tensor(shape=[2, 2], dtype=Float32, value=
[[ 1.00000000e+00  1.00000000e+00]
 [ 1.00000000e+00  1.00000000e+00]]), %5, Bool(0), Bool(0))
      # Fullname with scope: (Gradients/Default/Grad_MatMul/MatMul-op0)
      # Corresponding forward node candidate:
      # In file net.py:10, 15~26/        return self.out(h).sum()/<~~This line of code can be shared by multiple nodes./
  %9(CNode_1) = Return(%8)
      : (<Tensor[Float32], (2, 3)>)
}
)";

std::string scopes(const Nodes& nodes, std::string_view name) {
  std::string text;
  for (const IrNode* node : nodes.find(name)) text += std::string(node->scope) + ";";
  return text;
}

}  // namespace

TEST_CASE("code_mapping: nodes of a graph file") {
  const Nodes nodes(kGraph);
  CHECK(scopes(nodes, "Default_Load-op6") == "Default/Load-op6;");
  CHECK(nodes.find("Default_Load-op6")[0]->lines.empty());
  const auto found = nodes.find("Default_fc-Dense_MatMul-op2");
  REQUIRE(found.size() == 1);
  REQUIRE(found[0]->lines.size() == 2);
  CHECK(found[0]->lines[0] == "In file net.py:8~10, 4~32/    def construct(self, x):");
  CHECK(found[0]->lines[1] == "In file net.py:9, 21~28/        h = ops.relu(self.fc(x))");
  const auto backward = nodes.find("Gradients_Default_Grad_MatMul_MatMul-op0");
  REQUIRE(backward.size() == 1);
  CHECK(backward[0]->lines[0] == "Corresponding forward node candidate:");
  CHECK(backward[0]->lines.size() == 2);
}

TEST_CASE("code_mapping: names that hold nodes") {
  const Nodes nodes(kGraph);
  CHECK(scopes(nodes, "kernel_Default_fc-Dense_MatMul-op2_and_Default_Load-op6") ==
        "Default/fc-Dense/MatMul-op2;Default/Load-op6;");
  CHECK(scopes(nodes, "Default_fc-Dense_MatMul-op21").empty());
  CHECK(scopes(nodes, "nothing").empty());
  CHECK(scopes(nodes, "").empty());
  CHECK(scopes(nodes, std::string(5000, 'x') + "Default_Load-op6").empty());
}

TEST_CASE("code_mapping: the longest name counts, and the last node of a name") {
  const Nodes nodes(
      "  %0(a) = A()\n # Fullname with scope: (D/a)\n # first/\n"
      "  %1(b) = B()\n # Fullname with scope: (D/a/b)\n"
      "  %2(c) = C()\r\n # Fullname with scope: (D/a)\r\n # second/\r\n");
  CHECK(scopes(nodes, "D_a_b_c") == "D/a/b;");
  REQUIRE(nodes.find("D_a").size() == 1);
  REQUIRE(nodes.find("D_a")[0]->lines.size() == 1);
  CHECK(nodes.find("D_a")[0]->lines[0] == "second");
}

TEST_CASE("code_mapping: a scope belongs to the node before it") {
  CHECK(Nodes("").empty());
  CHECK(Nodes("# Fullname with scope: (D/a)\n").empty());
  CHECK(Nodes("  %0(a) = A()\n  %1(b) = B()\n # Fullname with scope: ()\n").empty());
  CHECK(scopes(Nodes("%0(a) = A()\n# Fullname with scope: (D/a"), "D_a") == "D/a;");
}
