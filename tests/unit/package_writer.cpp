#include "package_writer.h"

#include <gtest/gtest.h>

#include "backends/cpu/package/package_file.h"
#include "compile/packages.h"
#include "graph/text.h"

namespace aglow::testing_support {

void writePackage(const std::string& path, const char* graph, const std::string& cpu) {
  CompileOptions options{.backend = "cpu"};
  options.target.cpu = cpu;
  auto module = parseModule(graph);
  ASSERT_TRUE(module.ok()) << module.error().text();
  auto compiled = compileModule(*std::move(module), options);
  ASSERT_TRUE(compiled.ok()) << compiled.diagnostics().errors().front().text();
  std::vector<Compilation> variants;
  variants.push_back(*std::move(compiled));
  FileSet files;
  const Status added = addPackage(files, path, std::move(variants));
  ASSERT_TRUE(added.ok()) << added.error().text();
  ASSERT_TRUE(files.commit().ok());
}

bool runsHere(const std::string& path) {
  const auto facts = inspectPackage(path);
  EXPECT_TRUE(facts.ok()) << facts.error().text();
  return facts.ok() && facts->variants.front().runsHere;
}

std::string ownPackageVersion() { return packageVersion(); }

}  // namespace aglow::testing_support
