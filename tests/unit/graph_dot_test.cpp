#include "graph/dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "random_graph.h"
#include "support/utf8.h"

namespace aglow {
namespace {

using ::testing::HasSubstr;

const Type kVector(ElemKind::Float32, {4});

TEST(GraphDot, DrawsNodesStorageAndEdges) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", kVector);
  module.addPlaceholder("unused", kVector);
  b.named("y").when(b.input("p", Type(ElemKind::Bool, {})));
  b.output("out", b.elu(x, {.alpha = 2}));
  EXPECT_EQ(drawDot(b.function()),
            "digraph aglow {\n"
            "  rankdir=TB\n"
            "  node [fontname=\"Helvetica\", style=filled]\n"
            "  edge [fontname=\"Helvetica\", fontsize=9]\n"
            "  n0 [shape=box, fillcolor=\"#ffe9b8\", label=\"x\\nPlaceholder\\nf32[4]\"]\n"
            "  n1 [shape=box, fillcolor=\"#ffe9b8\", label=\"p\\nPlaceholder\\nbool[]\"]\n"
            "  n2 [shape=box, fillcolor=\"#ffe9b8\", label=\"out\\nPlaceholder\\nf32[4]\"]\n"
            "  subgraph cluster0 {\n"
            "    label=\"main\"\n"
            "    n3 [shape=ellipse, fillcolor=\"#cfe8cf\", label=\"y\\nElu\\n{alpha = 2}\"]\n"
            "    n4 [shape=ellipse, fillcolor=\"#ffd0c0\", label=\"save\\nSave\"]\n"
            "  }\n"
            "  n0 -> n3 [label=\"f32[4]\"]\n"
            "  n1 -> n3 [label=\"bool[]\", style=dashed]\n"
            "  n3 -> n4 [label=\"f32[4]\"]\n"
            "  n4 -> n2 [label=\"f32[4]\"]\n"
            "}\n");
  EXPECT_THAT(drawDot(module), HasSubstr("unused"));
}

TEST(GraphDot, EscapesNames) {
  Module module;
  module.addPlaceholder("a\"b\\c\n\xff", kVector);
  const std::string dot = drawDot(module);
  EXPECT_THAT(dot, HasSubstr("label=\"a\\\"b\\\\c\\\\x0a\\\\xff\\nPlaceholder"));
}

TEST(GraphDot, RandomGraphsAreValidUtf8) {
  Module module;
  RandomGraph(module, 3, {.oddNames = true}).addFunction("main", 60);
  const std::string dot = drawDot(module);
  for (size_t at = 0; at < dot.size();) {
    const size_t length = utf8Length(dot, at);
    ASSERT_GT(length, 0u) << "at byte " << at;
    at += length;
  }
}

}  // namespace
}  // namespace aglow
