// Packages: what they run gives the bits of the model itself, and what is wrong with a file is found before anything of
// it runs.
#include "compile/packages.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>

#include "backends/cpu/package/package_file.h"
#include "compile/package_text.h"
#include "counter_module.h"
#include "graph/text.h"
#include "runtime/network.h"
#include "support/hash.h"
#include "support/rng.h"

namespace aglow {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct PackageTest : ::testing::Test {
  PackageTest() : folder(fs::temp_directory_path() / ("aglow-packages-" + std::to_string(::getpid()))) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    path = (folder / "model.aglow").string();
  }
  ~PackageTest() override { fs::remove_all(folder); }

  static Compilation compiled(const std::string& cpu = {}) {
    CompileOptions options{.backend = "cpu"};
    options.target.cpu = cpu;
    auto module = parseModule(testing_support::kCounter);
    EXPECT_TRUE(module.ok()) << module.error().text();
    auto result = compileModule(*std::move(module), options);
    EXPECT_TRUE(result.ok()) << result.diagnostics().errors().front().text();
    return *std::move(result);
  }

  void write(const std::vector<std::string>& processors = {""}) const {
    std::vector<Compilation> variants;
    for (const std::string& cpu : processors) variants.push_back(compiled(cpu));
    FileSet files;
    const Status added = addPackage(files, path, std::move(variants));
    ASSERT_TRUE(added.ok()) << added.error().text();
    ASSERT_TRUE(files.commit().ok());
  }

  std::string bytes() const {
    const auto file = readFile(path);
    EXPECT_TRUE(file.ok());
    return {reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size()};
  }
  void rewrite(const std::string& content) const {
    ASSERT_TRUE(writeFileAtomically(path, std::as_bytes(std::span(content))).ok());
  }
  Error fault() const {
    auto opened = openPackage(path);
    if (opened.ok()) return {.code = Code::Internal, .message = "it was opened"};
    return opened.error();
  }

  fs::path folder;
  std::string path;
};

std::vector<double> ran(Compilation compilation, const std::string& function, int times) {
  auto network = Network::load(std::move(compilation), {.threads = 2});
  EXPECT_TRUE(network.ok()) << network.error().text();
  const auto number = (*network)->find(function);
  EXPECT_TRUE(number.ok());
  std::map<std::string, ModelValue> values;
  for (const Port& port : (*network)->functions()[*number].inputs) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < port.type.elements(); ++i) numbers.push_back(0.37 * static_cast<double>(i) - 1);
    values[port.name] = ModelValue::of(Tensor::of(port.type, numbers));
  }
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    const auto outputs = (*network)->run(*number, valuesIn(values));
    EXPECT_TRUE(outputs.ok()) << outputs.error().text();
    for (const ModelValue& value : *outputs)
      for (const double number64 : value.tensor().doubles()) all.push_back(number64);
  }
  return all;
}

TEST_F(PackageTest, GivesTheBitsOfTheModelAndKeepsItsState) {
  write();
  for (const std::string& function : compiled().functionNames()) {
    auto opened = openPackage(path);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    EXPECT_EQ(ran(*std::move(opened), function, 3), ran(compiled(), function, 3)) << function;
  }
}

TEST_F(PackageTest, IsTheSameTwice) {
  write();
  const std::string first = bytes();
  write();
  EXPECT_EQ(first, bytes());
}

TEST_F(PackageTest, ChoosesTheLastCodeThatRunsHere) {
  write({"x86-64", "x86-64-v2"});
  const auto facts = inspectPackage(path);
  ASSERT_TRUE(facts.ok()) << facts.error().text();
  ASSERT_EQ(facts->variants.size(), 2u);
  auto opened = openPackage(path);
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  auto network = Network::load(*std::move(opened));
  ASSERT_TRUE(network.ok());
  EXPECT_THAT((*network)->facts().target, HasSubstr(facts->variants[1].runsHere ? "x86-64-v2" : "x86-64"));
}

TEST_F(PackageTest, RefusesOtherProcessors) {
  write({"sapphirerapids"});
  const auto facts = inspectPackage(path);
  ASSERT_TRUE(facts.ok());
  if (facts->variants[0].runsHere) GTEST_SKIP() << "this processor has all of its instructions";
  const Error error = fault();
  EXPECT_EQ(error.code, Code::OtherPackage);
  EXPECT_THAT(error.message, HasSubstr("this processor lacks"));
  EXPECT_THAT(error.hint, HasSubstr("--cpu"));
}

TEST_F(PackageTest, RefusesEveryTruncation) {
  write();
  const std::string whole = bytes();
  for (const size_t size : {size_t{0}, size_t{7}, size_t{63}, size_t{64}, size_t{200}, size_t{4096}, whole.size() / 2,
                            whole.size() - 4096, whole.size() - 1}) {
    rewrite(whole.substr(0, size));
    EXPECT_EQ(fault().code, Code::BadPackage) << size;
  }
  rewrite(whole + std::string(4096, '\0'));
  EXPECT_EQ(fault().code, Code::BadPackage);
}

// Bytes up to the weights are all looked at, but for the gaps between sections.
TEST_F(PackageTest, FindsFlippedBytes) {
  write();
  const std::string whole = bytes();
  Rng rng(7);
  int refused = 0;
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    std::string changed = whole;
    const auto at = static_cast<size_t>(i < 64 ? i : rng.between(0, static_cast<int64_t>(whole.size()) - 1));
    changed[at] = static_cast<char>(changed[at] ^ (1 << rng.between(0, 7)));
    rewrite(changed);
    const Error error = fault();
    if (error.code == Code::Internal) {
      EXPECT_EQ(error.message, "it was opened");
      continue;
    }
    EXPECT_TRUE(error.code == Code::BadPackage || error.code == Code::OtherPackage) << error.text();
    ++refused;
  }
  EXPECT_GE(refused, 64);
  // A byte of each section that is not zero.
  for (const std::string_view word : {"target ", "declare", "aglowimg"}) {
    std::string changed = whole;
    changed[changed.find(word) + 2] ^= 1;
    rewrite(changed);
    EXPECT_EQ(fault().code, Code::BadPackage) << word;
  }
}

// The table with its hash made right again: whoever writes such a file means it.
TEST_F(PackageTest, RefusesHostilePlacesAndSizes) {
  constexpr size_t kHeader = 64, kRow = 32, kHash = 24, kSections = 12;
  write();
  const std::string whole = bytes();
  uint32_t sections = 0;
  std::memcpy(&sections, whole.data() + kSections, sizeof sections);
  ASSERT_EQ(sections, 4u);
  const auto with = [&](size_t at, uint64_t value, size_t size) {
    std::string changed = whole;
    std::memcpy(changed.data() + at, &value, size);
    std::memset(changed.data() + kHash, 0, 8);
    uint32_t count = 0;
    std::memcpy(&count, changed.data() + kSections, sizeof count);
    const size_t rows = std::min<size_t>(count, 1000) * kRow;
    const uint64_t hash = hashBytes(changed.data() + kHeader, rows, hashBytes(changed.data(), kHeader));
    std::memcpy(changed.data() + kHash, &hash, 8);
    rewrite(changed);
    return fault();
  };
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{4096}, ~uint64_t{0}, ~uint64_t{4095},
                               uint64_t{1} << 63, uint64_t{whole.size()}, uint64_t{whole.size() + 4096}})
    for (size_t row = 0; row < sections; ++row)
      for (const size_t field : {size_t{8}, size_t{16}}) {
        uint64_t old = 0;
        std::memcpy(&old, whole.data() + kHeader + row * kRow + field, 8);
        if (old == value) continue;
        EXPECT_EQ(with(kHeader + row * kRow + field, value, 8).code, Code::BadPackage) << row << " " << field;
      }
  EXPECT_EQ(with(kSections, 0xffffffffu, 4).code, Code::BadPackage);
  EXPECT_EQ(with(kSections, 0, 4).code, Code::OtherPackage);  // without any code
  const Error format = with(8, 2, 4);
  EXPECT_EQ(format.code, Code::OtherPackage);
  EXPECT_THAT(format.message, HasSubstr("format 2"));
  const Error version = with(32, 0x392e39, 8);  // "9.9"
  EXPECT_EQ(version.code, Code::OtherPackage);
  EXPECT_THAT(version.message, HasSubstr("9.9"));
}

// Tables of the code, with all hashes made right.
TEST_F(PackageTest, RefusesCodeWhoseTablesContradictEachOther) {
  write();
  const auto file = PackageFile::open(path);
  ASSERT_TRUE(file.ok());
  const auto section = [&](PackageSection which, uint32_t variant) {
    const auto found = (*file)->find(which, variant);
    EXPECT_TRUE(found.ok());
    return std::string(reinterpret_cast<const char*>(found->data()), found->size());
  };
  const std::string description = section(PackageSection::Description, 1),
                    programs = section(PackageSection::Programs, 1), code = section(PackageSection::Code, 1),
                    weights = section(PackageSection::Weights, 0);
  const auto with = [&](const std::string& text, const std::string& image) {
    const auto pieces = [](const std::string& s) {
      return std::vector<std::span<const std::byte>>{std::as_bytes(std::span(s))};
    };
    const std::vector<PackagePart> parts = {{PackageSection::Description, 1, pieces(text)},
                                            {PackageSection::Programs, 1, pieces(programs)},
                                            {PackageSection::Code, 1, pieces(image)},
                                            {PackageSection::Weights, 0, pieces(weights)}};
    FileSet files;
    EXPECT_TRUE(files.add(path, PackageBytes(parts).pieces()).ok());
    EXPECT_TRUE(files.commit().ok());
    return fault();
  };
  EXPECT_EQ(with(description, code).message, "it was opened");
  for (size_t word = 1; word < 10; ++word)
    for (const uint64_t value : {~uint64_t{0}, uint64_t{1} << 62, uint64_t{code.size() + 4096}}) {
      std::string changed = code;
      std::memcpy(changed.data() + 8 * word, &value, 8);
      EXPECT_EQ(with(description, changed).code, Code::BadPackage) << word;
    }
  EXPECT_EQ(with(description, "").code, Code::BadPackage);
  EXPECT_EQ(with("target", code).code, Code::BadPackage);
  EXPECT_EQ(with("", code).code, Code::BadPackage);
  const size_t at = description.find("function");
  EXPECT_EQ(with(description.substr(0, at), code).code, Code::BadPackage);  // other functions than programs
}

TEST(PackageText, ReadsWhatItPrints) {
  const Type type(ElemKind::Float32, Shape{2, 3});
  const Port tensor{.kind = Port::Kind::Tensor, .name = "a \"b\"\n", .placeholder = "p", .type = type, .items = {}};
  const Port item{.kind = Port::Kind::Tensor, .name = "", .placeholder = "q", .type = type, .items = {}};
  const PackageText package{
      .triple = "x86_64-linux-gnu",
      .cpu = "x86-64",
      .features = {"avx", "sse4.1"},
      .interfaces = {{.function = "main",
                      .inputs = {tensor, {.kind = Port::Kind::Frozen, .name = "f", .type = type}},
                      .outputs = {{.kind = Port::Kind::Sequence, .name = "s", .items = {item, item}},
                                  {.kind = Port::Kind::None, .name = "n"}}}}};
  const auto text = printPackage(package);
  ASSERT_TRUE(text.ok());
  const auto parsed = parsePackage(*text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().text();
  EXPECT_EQ(printPackage(*parsed).ok() ? *printPackage(*parsed) : "", *text);
  EXPECT_EQ(parsed->interfaces[0].inputs[0].name, tensor.name);
  EXPECT_EQ(parsed->interfaces[0].outputs[0].items.size(), 2u);
  for (size_t size = 0; size < text->size(); ++size) {
    const auto cut = parsePackage(std::string_view(*text).substr(0, size));
    if (!cut.ok()) EXPECT_EQ(cut.error().code, Code::BadText);
  }
}

}  // namespace
}  // namespace aglow
