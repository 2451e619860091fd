// External data: found below the model's folder, refused everywhere else, by either way of looking a path up.
#include "import/onnx/external_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "import/onnx/tensor_data.h"
#include "unit/onnx_writer.h"

namespace aglow {
namespace {

namespace fs = std::filesystem;
namespace w = onnx_writer;
using onnx::ExternalFiles;
using testing::ElementsAre;
using testing::HasSubstr;

// A folder "model" with files in it and a secret beside it.
class ExternalData : public testing::TestWithParam<ExternalFiles::Lookup> {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "aglow-external-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(folder() / "sub");
    write(root_ / "secret", "12345678");
    write(folder() / "weights", "abcdefgh");
    write(folder() / "sub" / "weights", "ABCDEFGH");
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path folder() const { return root_ / "model"; }
  static void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

  Result<ExternalFiles::Part> find(const onnx::StringPairs& entries, int64_t expected = 8) {
    return ExternalFiles(folder().string(), GetParam()).find(entries, expected);
  }
  static std::string read(const Result<ExternalFiles::Part>& part) {
    if (!part.ok()) return part.error().text();
    std::string text(static_cast<size_t>(part->bytes), '\0');
    const Status done = part->read(std::as_writable_bytes(std::span(text)));
    return done.ok() ? text : done.error().text();
  }
  std::string found(const onnx::StringPairs& entries, int64_t expected = 8) { return read(find(entries, expected)); }
  std::string refused(const onnx::StringPairs& entries, int64_t expected = 8) {
    const auto data = find(entries, expected);
    if (data.ok()) return "accepted";
    EXPECT_EQ(data.error().code, Code::BadExternalData);
    return data.error().text();
  }
  std::string refused(const std::string& location) { return refused({{"location", location}}); }

  fs::path root_;
};

INSTANTIATE_TEST_SUITE_P(Lookups, ExternalData,
                         testing::Values(ExternalFiles::Lookup::Kernel, ExternalFiles::Lookup::Components),
                         [](const auto& chosen) {
                           return chosen.param == ExternalFiles::Lookup::Kernel ? "Kernel" : "Components";
                         });

TEST_P(ExternalData, FindsFilesBelowTheFolder) {
  EXPECT_EQ(found({{"location", "weights"}}), "abcdefgh");
  EXPECT_EQ(found({{"location", "./sub//weights"}, {"checksum", "ignored"}}), "ABCDEFGH");
  EXPECT_EQ(found({{"location", "weights"}, {"offset", "2"}, {"length", "3"}}, 3), "cde");
  EXPECT_EQ(found({{"location", "weights"}, {"offset", "6"}}, 2), "gh");
  EXPECT_EQ(found({{"location", "weights"}, {"offset", "8"}, {"length", "0"}}, 0), "");
}

TEST_P(ExternalData, RefusesPathsOutOfTheFolder) {
  EXPECT_THAT(refused("../secret"), HasSubstr("'..'"));
  EXPECT_THAT(refused("sub/../weights"), HasSubstr("'..'"));
  EXPECT_THAT(refused("sub/.."), HasSubstr("'..'"));
  EXPECT_THAT(refused((root_ / "secret").string()), HasSubstr("absolute"));
  EXPECT_THAT(refused(std::string("weights\0x", 9)), HasSubstr("zero byte"));
  EXPECT_THAT(refused(""), HasSubstr("no location"));
  EXPECT_THAT(refused("./"), HasSubstr("names no file"));
  EXPECT_THAT(refused("missing"), HasSubstr("'missing'"));
  EXPECT_THAT(refused("weights/x"), HasSubstr("not a folder"));
  EXPECT_THAT(refused(std::string(100'000, 'a')), HasSubstr("..."));
}

TEST_P(ExternalData, RefusesLinks) {
  fs::create_symlink(root_ / "secret", folder() / "leaf");
  fs::create_symlink("weights", folder() / "inside");
  fs::create_directory_symlink(root_, folder() / "parent");
  fs::create_directory_symlink("sub", folder() / "within");
  fs::create_hard_link(root_ / "secret", folder() / "hard");
  EXPECT_THAT(refused("leaf"), HasSubstr("a link"));
  EXPECT_THAT(refused("inside"), HasSubstr("a link"));
  EXPECT_THAT(refused("parent/secret"), HasSubstr("a link"));
  EXPECT_THAT(refused("within/weights"), HasSubstr("a link"));
  EXPECT_THAT(refused("hard"), HasSubstr("hard links"));
}

TEST_P(ExternalData, RefusesWhatIsNoRegularFileWithoutBlocking) {
  ASSERT_EQ(::mkfifo((folder() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refused("pipe"), HasSubstr("not a regular file"));
  EXPECT_THAT(refused("sub"), HasSubstr("not a regular file"));
}

TEST_P(ExternalData, RefusesRangesOutsideOfTheFile) {
  const auto range = [&](const char* offset, const char* length) {
    return refused({{"location", "weights"}, {"offset", offset}, {"length", length}});
  };
  EXPECT_THAT(range("1", "8"), HasSubstr("8 bytes"));
  EXPECT_THAT(range("9", "0"), HasSubstr("leave the file"));
  EXPECT_THAT(range("9223372036854775807", "9223372036854775807"), HasSubstr("leave the file"));
  EXPECT_THAT(range("0", "7"), HasSubstr("expected 8 bytes for the tensor's shape, got 7"));
  EXPECT_THAT(refused({{"location", "weights"}, {"offset", "9"}}), HasSubstr("leave the file"));
  EXPECT_THAT(refused({{"location", "weights"}, {"offset", "1"}}), HasSubstr("got 7"));
}

TEST_P(ExternalData, RefusesNumbersThatAreNone) {
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "1e3", "1.0", "9223372036854775808"}) {
    EXPECT_THAT(refused({{"location", "weights"}, {"offset", text}}), HasSubstr("is not a number of bytes")) << text;
    EXPECT_THAT(refused({{"location", "weights"}, {"length", text}}), HasSubstr("is not a number of bytes")) << text;
  }
}

TEST_P(ExternalData, KeepsWhatItOpenedWhenTheNameIsSwapped) {
  ExternalFiles files(folder().string(), GetParam());
  const auto first = files.find({{"location", "weights"}}, 8);
  ASSERT_TRUE(first.ok());
  fs::remove(folder() / "weights");
  fs::create_symlink(root_ / "secret", folder() / "weights");
  const auto second = files.find({{"location", "weights"}}, 8);
  EXPECT_EQ(read(first), "abcdefgh");
  EXPECT_EQ(read(second), "abcdefgh");
}

TEST_P(ExternalData, RefusesFilesThatChangeMeanwhile) {
  ExternalFiles files(folder().string(), GetParam());
  const auto part = files.find({{"location", "weights"}}, 8);
  ASSERT_EQ(read(part), "abcdefgh");
  const auto time = fs::last_write_time(folder() / "weights");
  write(folder() / "weights", "abcdefgH");
  fs::last_write_time(folder() / "weights", time);
  EXPECT_THAT(read(part), HasSubstr("external data 'weights': the file has changed"));
  fs::resize_file(folder() / "weights", 4);
  EXPECT_THAT(read(part), HasSubstr("the file has changed"));
}

// Some exporters write a file for each tensor.
TEST_P(ExternalData, KeepsNoDescriptorForEachOfManyFiles) {
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  ExternalFiles files(folder().string(), GetParam());
  const auto before = descriptors();
  for (int i = 0; i < 200; ++i) {
    write(folder() / std::to_string(i), "12345678");
    ASSERT_EQ(read(files.find({{"location", std::to_string(i)}}, 8)), "12345678");
  }
  EXPECT_LT(descriptors() - before, 100);
  ASSERT_EQ(read(files.find({{"location", "199"}}, 8)), "12345678");
  fs::remove(folder() / "199");
  write(folder() / "199", "other!!!");
  EXPECT_THAT(read(files.find({{"location", "199"}}, 8)), HasSubstr("changed since it was first opened"));
}

TEST_P(ExternalData, IsReadThroughTheModel) {
  const w::Tensor tensor =
      w::Tensor("w", w::kUInt8, {2, 2}).external({{"location", "weights"}, {"offset", "1"}, {"length", "4"}});
  const std::string file = w::Model().graph(w::Graph().initializer(tensor)).bytes();
  write(folder() / "model.onnx", file);
  auto model = onnx::readModel((folder() / "model.onnx").string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  model->external = std::make_shared<ExternalFiles>(folder().string(), GetParam());
  const auto data = onnx::toTensor(model->graph.initializers.at(0), *model);
  ASSERT_TRUE(data.ok()) << data.error().text();
  EXPECT_THAT(data->toInts(), ElementsAre('b', 'c', 'd', 'e'));
}

TEST_P(ExternalData, IsRefusedWithoutAFolder) {
  const std::string file =
      w::Model()
          .graph(w::Graph().initializer(w::Tensor("w", w::kUInt8, {8}).external({{"location", "weights"}})))
          .bytes();
  const auto model = onnx::parseModel(std::as_bytes(std::span(file)), nullptr);
  ASSERT_TRUE(model.ok());
  const auto data = onnx::toTensor(model->graph.initializers.at(0), *model);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().code, Code::BadExternalData);
  EXPECT_THAT(data.error().text(), HasSubstr("tensor 'w'"));
}

}  // namespace
}  // namespace aglow
