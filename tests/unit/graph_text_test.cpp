// Modules to text and back: every feature by hand, every operator and whole graphs at random.
#include "graph/text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "graph/builder.h"
#include "ops/all_ops.h"
#include "random_graph.h"
#include "round_trip.h"

namespace aglow {
namespace {

const Type kVector(ElemKind::Float32, {4});

TEST(GraphText, ReadsAsItIsMeant) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value image = b.input("image", Type(ElemKind::Float32, {1, 1, 8, 8}));
  const Value filter = b.constant(Tensor(Type(ElemKind::Float32, {8, 1, 3, 3})), "conv.w");
  const Value bias = b.constant(Tensor::of(Type(ElemKind::Float32, {8}), std::vector<double>(8, 0.5)), "b");
  b.named("conv");
  const Value conv = b.conv(image, filter, bias, {.pads = {1, 1, 1, 1}});
  b.named("top");
  Node* top = b.topK(b.reshaped(conv, {512}), {.k = 2});
  b.named("y").when(b.input("p", Type(ElemKind::Bool, {})));
  const Value y = b.add(top->result(0), top->result(0));
  b.output("out", y);
  b.output("index", top->result(1));
  EXPECT_EQ(print(module),
            "module {\n"
            "  placeholder @image : f32[1,1,8,8]\n"
            "  constant @conv.w : f32[8,1,3,3] = splat 0\n"
            "  constant @b : f32[8] = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]\n"
            "  placeholder @p : bool[]\n"
            "  placeholder @out : f32[2]\n"
            "  placeholder @index : i64[2]\n"
            "  func @main {\n"
            "    %conv = Conv(@image, @conv.w, @b) {pads = [1, 1, 1, 1]} : f32[1,8,8,8]\n"
            "    %top = Reshape(%conv) {shape = [512]} : f32[512]\n"
            "    %top.1 = TopK(%top) {k = 2} : f32[2], i64[2]\n"
            "    %y = Add(%top.1, %top.1) if @p : f32[2]\n"
            "    %save = Save(%y, @out)\n"
            "    %save.1 = Save(%top.1:1, @index)\n"
            "  }\n"
            "}\n");
  expectRoundTrip(module);
  EXPECT_EQ(print(*top), "%top.1 = TopK(%top) {k = 2} : f32[2], i64[2]");
  EXPECT_EQ(print(*filter.node), "constant @conv.w : f32[8,1,3,3] = splat 0");
}

TEST(GraphText, EmptyModulesAndFunctions) {
  Module module;
  expectRoundTrip(module);
  module.addFunction("");
  module.addFunction("f g");
  expectRoundTrip(module);
}

TEST(GraphText, AbsentOperandsKeepTheirPlace) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", Type(ElemKind::Float32, {1, 2, 5}));
  const Value w = b.input("w", Type(ElemKind::Float32, {3, 2, 1}));
  b.function().add(Attrs(opDef(Op::Conv)), {Type(ElemKind::Float32, {1, 3, 5})}, {x, w, Value{}}, "conv");
  EXPECT_EQ(print(b.function()), "func @main {\n  %conv = Conv(@x, @w) : f32[1,3,5]\n}\n");
  expectRoundTrip(module);
  const auto given = parseModule(
      "module { placeholder @x : f32[1,2,5] placeholder @w : f32[3,2,1] func @main {"
      " %conv = Conv(@x, @w, _) } }");
  ASSERT_TRUE(given.ok()) << given.error().text();
  EXPECT_EQ(difference(module, **given), "");
}

TEST(GraphText, NamesOfAnyBytes) {
  Module module;
  Function* f = module.addFunction(std::string("main\0\"", 6));
  const std::string names[] = {"x:0", "a b", std::string("\0\xff", 2), "\"\\\n", "/a/b", "_", "if", "ü", "%", "0"};
  for (const std::string& name : names) {
    const Value in = module.addPlaceholder(name, kVector)->result();
    f->add(Attrs(opDef(Op::Relu)), {kVector}, {in}, name);
  }
  expectRoundTrip(module);
}

TEST(GraphText, ConstantsOfEveryKindAndSize) {
  Random random(7);
  Module module;
  for (int k = 0; k < kElemKinds; ++k) {
    const auto kind = static_cast<ElemKind>(k);
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{16}, Shape{17}, Shape{3, 9}}) {
      const Type type = isQuantized(kind) ? *Type::quantized(kind, shape, {-1, {0.25f}, {3}}) : Type(kind, shape);
      Tensor tensor = randomTensor(random, type);
      if (type.bytes() > 0) std::memset(tensor.mutableData(), 0xfe, 1);
      module.addConstant("c", tensor);
      module.addConstant("zero", Tensor(type));
    }
  }
  expectRoundTrip(module);
}

TEST(GraphText, SeveralFunctionsShareStorage) {
  Module module;
  const Value x = module.addPlaceholder("x", kVector)->result();
  for (const char* name : {"f", "g"}) {
    Builder b(*module.addFunction(name));
    b.named("y");
    b.relu(x);
  }
  expectRoundTrip(module);
}

TEST(GraphText, TypesAndNamesMayBeLeftOut) {
  const auto module = parseModule(
      "# a comment\nmodule { placeholder @x : f32[4] placeholder @y : f32[4]\n"
      "func @f { Relu(@x) %r = Neg(@x) Save(%r, @y) } }  # another");
  ASSERT_TRUE(module.ok()) << module.error().text();
  EXPECT_EQ(print(*(*module)->findFunction("f")),
            "func @f {\n  %Relu = Relu(@x) : f32[4]\n  %r = Neg(@x) : f32[4]\n  %Save = Save(%r, @y)\n}\n");
  expectRoundTrip(**module);
}

// The first block of code in the documentation.
TEST(GraphText, TheDocumentedExampleParses) {
  std::ifstream file(AGLOW_SOURCE_DIR "/docs/text-form.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const size_t start = page.find("```\n") + 4;
  const std::string example = page.substr(start, page.find("```", start) - start);
  const auto module = parseModule(example);
  ASSERT_TRUE(module.ok()) << module.error().text() << "\n" << example;
  EXPECT_EQ((*module)->functions().front()->size(), 7u);
  expectRoundTrip(**module);
}

TEST(GraphText, EveryOperatorRoundTrips) {
  for (const OpDef* op : allOps()) {
    if (op->kind == OpKind::Storage) continue;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(std::string(op->name) + ", seed " + std::to_string(seed));
      Module module;
      Function* f = module.addFunction("main");
      const Node* node = RandomGraph(module, seed, {.predicates = 0.5}).addNode(*f, *op);
      ASSERT_NE(node, nullptr) << "no valid use was found";
      expectRoundTrip(module);
    }
  }
}

TEST(GraphText, RandomGraphsRoundTrip) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Module module;
    RandomGraph random(module, seed, {.oddNames = seed % 2 == 1});
    Function* f = random.addFunction("main", 25);
    EXPECT_GE(f->size(), 25u);
    module.clone(*f, "copy");
    expectRoundTrip(module);
  }
}

TEST(GraphText, RandomGraphsAreTheSameForTheSameSeed) {
  Module a, b, c;
  RandomGraph(a, 3).addFunction("main", 20);
  RandomGraph(b, 3).addFunction("main", 20);
  RandomGraph(c, 4).addFunction("main", 20);
  EXPECT_EQ(difference(a, b), "");
  EXPECT_NE(difference(a, c), "");
}

struct BadCase {
  const char* text;  // inside of a module that declares @x : f32[4], @p : bool[] and @out : f32[4]
  const char* message;
};

TEST(GraphText, FaultsAreExplained) {
  const BadCase table[] = {
      {"placeholder @x : f32[1]", "5:13: '@x' is defined twice"},
      {"placeholder x : f32[1]", "5:13: expected a name such as @x, found 'x'"},
      {"placeholder @\"\" : f32[1]", "5:13: a name cannot be empty"},
      {"constant @c : f32[2]", "6:1: expected '=', found '}'"},
      {"constant @c : f32[2] = [1]", "5:24: expected 2 elements for f32[2], found 1"},
      {"var @c : f32[2]", "5:1: expected 'placeholder', 'state', 'constant', 'func' or '}', found 'var'"},
      {"func @f {} func @f {}", "5:17: '@f' is defined twice"},
      {"func main {}", "5:6: expected the name of a function, such as @main, found 'main'"},
      {"func @f { %y = Relu(@x)",
       "7:1: expected 'placeholder', 'state', 'constant', 'func' or '}', found the end of the text"},
      {"func @f { @x = Relu(@x) }", "5:11: expected a node or '}', found '@x'"},
      {"func @f { Save(@x, @out) Save(@x, @out) }", "5:26: 'out' is written twice"},
      {"func @f { %y = Relo(@x) }", "5:16: expected an operator, found 'Relo'\n  hint: did you mean 'Relu'?"},
      {"func @f { %y = relu(@x) }", "5:16: expected an operator, found 'relu'\n  hint: did you mean 'Relu'?"},
      {"func @f { %y Relu(@x) }", "5:14: expected '=', found 'Relu'"},
      {"func @f { %y = Relu @x }", "5:21: expected '(', found '@x'"},
      {"func @f { %y = Relu(@x }", "5:24: expected ',' or ')', found '}'"},
      {"func @f { %y = Relu(3) }", "5:21: expected a value such as %x or @x, found '3'"},
      {"func @f { %y = Relu(@xx) }", "5:21: '@xx' is not defined before its use\n  hint: did you mean 'x'?"},
      {"func @f { %y = Relu(%y) }", "5:21: '%y' is not defined before its use"},
      {"func @f { %sum = Relu(@x) %z = Relu(%smu) }",
       "5:37: '%smu' is not defined before its use\n  hint: did you mean 'sum'?"},
      {"func @f { %y = Relu(@x) %y = Relu(@x) }", "5:25: '%y' is defined twice"},
      {"func @f { %y:1 = Relu(@x) }", "5:11: all results of a node are defined at once, under one name"},
      {"func @f { %y = Relu(@x) %z = Relu(%y:1) }", "5:35: 'y' has 1 results"},
      {"func @f { %y = Relu(@x) : f32[5] }", "5:27: expected f32[4] by the operator's rules, found f32[5]"},
      {"func @f { %y = Relu(@x) : f32[4], f32[4] }", "5:33: expected 1 types, found ','"},
      {"func @f { %y = TopK(@x) {k = 1} : f32[1] }", "5:42: expected ',', found '}'"},
      {"func @f { %y = Relu(@x) {alpha = 1} }", "5:26: expected an attribute of Relu, found 'alpha'"},
      {"func @f { %y = Relu(@x) if @x }", "5:16: expected a predicate of type bool[] or bool[n], got f32[4]"},
      {"func @f { %y = Relu() }", "5:16: Relu needs its operand 'x' (got 0 operands)"},
      {"func @f { %y = Add(@x, @p) }",
       "5:16: operand 'b' of Add cannot be bool[]; expected one of f32, f64, f16, bf16, f8e4m3fn, f8e4m3fnuz, f8e5m2, "
       "f8e5m2fnuz, f8e8m0, f4e2m1, i2, i4, i8, i16, i32, i64, u2, u4, u8, u16, u32, u64"},
      {"func @f { %y = Constant() }", "5:16: storage belongs to the module, not to a function"},
      {"func @f { Save(@x, %x) }", "5:20: '%x' is not defined before its use"},
      {"func @f { %y = Relu(@x) Save(@x, %y) }", "5:25: expected a placeholder to save into, got 'y' (Relu)"},
      {"func @f { Save(@p, @out) }", "5:11: expected f32[4] as 'out' has it, got bool[]"},
      {"func @f { Save(@x) }", "5:11: expected a value and a target, got 1 operands"},
      {"func @f { Save(@x, @out) : f32[4] }", "5:28: expected no types, found 'f32'"},
      {"} module {", "5:3: expected the end of the text, found 'module'"},
  };
  for (const auto& [text, message] : table) {
    const std::string whole =
        "module {\nplaceholder @x : f32[4]\nplaceholder @p : bool[]\nplaceholder @out : f32[4]\n" + std::string(text) +
        "\n}\n";
    const auto module = parseModule(whole);
    ASSERT_FALSE(module.ok()) << text;
    EXPECT_EQ(module.error().text(), "error[E206] " + std::string(message)) << text;
  }
  EXPECT_EQ(parseModule("").error().text(), "error[E206] 1:1: expected 'module', found the end of the text");
}

TEST(GraphText, ShortChainsCannotAskForMuchMemory) {
  const auto chain = [](const std::string& type, const std::string& op) {
    std::string text = "module { placeholder @x : " + type + " func @f { %v0 = " + op + "(@x, @x)\n";
    for (int i = 1; i < 60; ++i) {
      const std::string last = "%v" + std::to_string(i - 1);
      text += "%v" + std::to_string(i) + " = " + op + "(" + last + ", " + last + ")\n";
    }
    const auto module = parseModule(text + "} }");
    return module.ok() ? "" : module.error().message;
  };
  EXPECT_EQ(chain("qi8[2]<axis 0: 1:0, 2:0>", "Concat"), "the types have more scales than the text can show");
  EXPECT_EQ(chain("i64[1,1]", "Gather"), "expected at most 64 axes, got 65");
}

// Bytes changed, dropped, doubled and copied from elsewhere.
std::string mutated(Random& random, std::string text) {
  for (int64_t edits = random.between(1, 4); edits > 0 && !text.empty(); --edits) {
    const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
    const auto length = static_cast<size_t>(random.between(1, 8));
    const auto from = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
    switch (random.between(0, 4)) {
      case 0:
        text[at] = static_cast<char>(random.bits());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(from, length));
        break;
      case 3:
        text[at] = text[from];
        break;
      default:
        text.insert(at, std::to_string(random.bits() >> random.between(0, 63)));
    }
  }
  return text;
}

TEST(GraphText, DamagedTextIsRefusedOrValid) {
  Random random(11);
  Module module;
  RandomGraph(module, 6, {.oddNames = true}).addFunction("main", 40);
  BlobStore blobs;
  const std::string text = print(module, &blobs);
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string damaged = mutated(random, text);
    const auto read = parseModule(damaged, blobs);
    if (!read.ok()) {
      EXPECT_EQ(read.error().code, Code::BadText);
      EXPECT_FALSE(read.error().where.empty());
      continue;
    }
    ++accepted;
    expectRoundTrip(**read);
  }
  EXPECT_GT(accepted, 20);
  EXPECT_LT(accepted, 1500);
}

}  // namespace
}  // namespace aglow
