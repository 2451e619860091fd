#include "aglow/aglow.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "aglow/aglow.hpp"
#include "counter_module.h"
#include "onnx_writer.h"
#include "support/machine.h"

namespace {

using aglow::testing_support::kCounter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDigits = AGLOW_SOURCE_DIR "/examples/digits/digits.onnx";

std::string writeGraph(const std::string& text) {
  // Tests run at the same time in processes of their own.
  std::string path = ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".graph";
  std::ofstream(path) << text;
  return path;
}

aglow_model* loaded(const std::string& path, const aglow_options* options = nullptr) {
  aglow_model* model = nullptr;
  EXPECT_EQ(aglow_load(path.c_str(), options, &model), AGLOW_OK) << aglow_error_text();
  return model;
}

constexpr const char* kSums = R"(module {
  placeholder @x : f32[2,2]
  placeholder @n : i64[2]
  placeholder @sum : f32[2,2]
  placeholder @twice : i64[2]
  func @main { %a = Add(@x, @x) Save(%a, @sum) %b = Add(@n, @n) Save(%b, @twice) }
})";

TEST(CApi, DescribesInputsAndOutputs) {
  aglow_model* model = loaded(writeGraph(kSums));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(aglow_num_inputs(model), 2U);
  EXPECT_EQ(aglow_num_outputs(model), 2U);
  const aglow_tensor_info* x = aglow_input(model, 0);
  EXPECT_STREQ(x->name, "x");
  EXPECT_EQ(x->kind, AGLOW_FLOAT32);
  EXPECT_THAT(std::vector<int64_t>(x->dims, x->dims + x->rank), ElementsAre(2, 2));
  EXPECT_EQ(x->bytes, 16U);
  EXPECT_EQ(aglow_input(model, 1)->kind, AGLOW_INT64);
  EXPECT_EQ(aglow_input(model, 2), nullptr);
  EXPECT_EQ(aglow_output(model, 2), nullptr);
  EXPECT_EQ(aglow_find_input(model, "n"), 1);
  EXPECT_EQ(aglow_find_output(model, "sum"), 0);
  EXPECT_EQ(aglow_find_output(model, "n"), -1);
  EXPECT_GE(aglow_info(model)->threads, 1);
  EXPECT_STRNE(aglow_info(model)->target, "");
  aglow_free(model);
}

TEST(CApi, RequestsOfSeveralThreadsRunSideBySide) {
  aglow_options* options = aglow_options_new();
  ASSERT_EQ(aglow_options_set_contexts(options, 3), AGLOW_OK);
  ASSERT_EQ(aglow_options_set_queue(options, 8), AGLOW_OK);
  EXPECT_EQ(aglow_options_set_contexts(options, -1), AGLOW_USAGE);
  EXPECT_EQ(aglow_options_set_contexts(options, 1025), AGLOW_USAGE);
  EXPECT_EQ(aglow_options_set_queue(options, -1), AGLOW_USAGE);
  aglow_model* model = loaded(writeGraph(kSums), options);
  ASSERT_NE(model, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([model, t] {
      aglow_request* request = nullptr;
      ASSERT_EQ(aglow_request_new(model, t % 2 == 0 ? nullptr : "main", &request), AGLOW_OK) << aglow_error_text();
      const auto number = static_cast<float>(t);
      const float x[4] = {number, 2, 3, 4};
      const int64_t n[2] = {t, 6};
      float sum[4] = {};
      int64_t twice[2] = {};
      EXPECT_EQ(aglow_request_run(request), AGLOW_USAGE);
      EXPECT_THAT(aglow_error_text(), HasSubstr("input 'x' of type f32[2,2] is not bound"));
      ASSERT_EQ(aglow_request_bind_input(request, 0, x, sizeof(x)), AGLOW_OK);
      ASSERT_EQ(aglow_request_bind_input(request, 1, n, sizeof(n)), AGLOW_OK);
      ASSERT_EQ(aglow_request_bind_output(request, 0, sum, sizeof(sum)), AGLOW_OK);
      ASSERT_EQ(aglow_request_bind_output(request, 1, twice, sizeof(twice)), AGLOW_OK);
      EXPECT_EQ(aglow_request_bind_output(request, 2, twice, sizeof(twice)), AGLOW_USAGE);
      for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(aglow_request_run(request), AGLOW_OK) << aglow_error_text();
        EXPECT_THAT(sum, ElementsAre(2 * number, 4, 6, 8));
        EXPECT_THAT(twice, ElementsAre(2 * t, 12));
      }
      aglow_request_free(request);
    });
  for (std::thread& thread : threads) thread.join();
  aglow_request* none = nullptr;
  EXPECT_EQ(aglow_request_new(model, "other", &none), AGLOW_USAGE);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(aglow_request_new(nullptr, nullptr, &none), AGLOW_USAGE);
  aglow_request_free(nullptr);
  aglow_free(model);
  aglow_options_free(options);
}

TEST(CApi, RunsInTheCallersMemory) {
  aglow_model* model = loaded(writeGraph(kSums));
  ASSERT_NE(model, nullptr);
  float x[4] = {1, 2, 3, 4}, sum[4] = {};
  int64_t n[2] = {5, 6}, twice[2] = {};
  ASSERT_EQ(aglow_bind_input(model, 0, x, sizeof(x)), AGLOW_OK);
  ASSERT_EQ(aglow_bind_input(model, 1, n, sizeof(n)), AGLOW_OK);
  ASSERT_EQ(aglow_bind_output(model, 0, sum, sizeof(sum)), AGLOW_OK);
  ASSERT_EQ(aglow_bind_output(model, 1, twice, sizeof(twice)), AGLOW_OK);
  ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  EXPECT_THAT(sum, ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(twice, ElementsAre(10, 12));
  x[0] = 100;
  float other[4] = {};
  ASSERT_EQ(aglow_bind_output(model, 0, other, sizeof(other)), AGLOW_OK);
  ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  EXPECT_THAT(other, ElementsAre(200, 4, 6, 8));
  EXPECT_THAT(sum, ElementsAre(2, 4, 6, 8));
  aglow_free(model);
}

TEST(CApi, SaysWhatDoesNotFit) {
  aglow_model* model = loaded(writeGraph(kSums));
  ASSERT_NE(model, nullptr);
  float x[8] = {};
  EXPECT_EQ(aglow_run(model), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("input 'x' of type f32[2,2] is not bound"));
  EXPECT_EQ(aglow_bind_input(model, 0, x, sizeof(x)), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("input 'x': f32[2,2] takes 16 bytes, got 32"));
  EXPECT_EQ(aglow_bind_input(model, 0, nullptr, 16), AGLOW_USAGE);
  EXPECT_EQ(aglow_bind_input(model, 0, reinterpret_cast<char*>(x) + 2, 16), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("not a multiple of 4"));
  EXPECT_EQ(aglow_bind_output(model, 7, x, 16), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("there is no output 7, the model has 2"));
  EXPECT_EQ(aglow_bind_input(nullptr, 0, x, 16), AGLOW_USAGE);
  aglow_free(model);
  aglow_free(nullptr);
}

TEST(CApi, LoadsFromMemoryAsFromAFile) {
  std::ifstream file(kDigits, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  aglow_model* models[2] = {loaded(kDigits), nullptr};
  ASSERT_EQ(aglow_load_memory(bytes.data(), bytes.size(), nullptr, &models[1]), AGLOW_OK) << aglow_error_text();
  std::vector<float> image(64, 0.5F);
  float scores[2][10] = {};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(aglow_bind_input(models[i], 0, image.data(), 256), AGLOW_OK);
    ASSERT_EQ(aglow_bind_output(models[i], 0, scores[i], sizeof(scores[i])), AGLOW_OK);
    ASSERT_EQ(aglow_run(models[i]), AGLOW_OK) << aglow_error_text();
    aglow_free(models[i]);
  }
  EXPECT_EQ(std::memcmp(scores[0], scores[1], sizeof(scores[0])), 0);
  EXPECT_GT(scores[0][0] + scores[0][1] + scores[0][2], 0);
}

TEST(CApi, RefusesFaultyFilesWithTheExitCodeOfTheProgram) {
  aglow_model* model = nullptr;
  EXPECT_EQ(aglow_load("/nonexistent/model.onnx", nullptr, &model), AGLOW_FILE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("/nonexistent/model.onnx"));
  EXPECT_EQ(aglow_load_memory("junk", 4, nullptr, &model), AGLOW_BAD_MODEL);
  EXPECT_EQ(aglow_load(nullptr, nullptr, &model), AGLOW_USAGE);
  EXPECT_EQ(model, nullptr);
}

TEST(CApi, TakesOptions) {
  aglow_options* options = aglow_options_new();
  EXPECT_EQ(aglow_options_set_backend(options, "tpu"), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("there is no backend 'tpu'"));
  EXPECT_EQ(aglow_options_set_backend(options, "interpreter"), AGLOW_OK);
  EXPECT_EQ(aglow_options_set_threads(options, 1), AGLOW_OK);
  EXPECT_EQ(aglow_options_set_threads(options, -1), AGLOW_USAGE);
  EXPECT_EQ(aglow_options_set_threads(options, 1024), AGLOW_OK);
  EXPECT_EQ(aglow_options_set_threads(options, 1'000'000'000), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("expected 1 to 1024"));
  EXPECT_EQ(aglow_options_set_threads(options, 1), AGLOW_OK);
  EXPECT_EQ(aglow_options_set_dim(options, "batch", 1), AGLOW_OK);
  const int64_t dims[] = {1, -1};
  EXPECT_NE(aglow_options_set_shape(options, "x", dims, 2), AGLOW_OK);
  aglow_model* model = loaded(kDigits, options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(aglow_info(model)->threads, 1);
  aglow_free(model);
  EXPECT_EQ(aglow_options_set_cache(options, "off"), AGLOW_OK);
  EXPECT_EQ(aglow_options_set_cache(options, nullptr), AGLOW_USAGE);
  EXPECT_EQ(aglow_options_set_memory_limit(options, 10), AGLOW_OK);
  EXPECT_EQ(aglow_load(kDigits.c_str(), options, &model), AGLOW_OUT_OF_RESOURCES);
  aglow_options_free(options);
}

// y = x + x, and x as it came, for any number of rows.
std::string anyRows() {
  using namespace aglow::onnx_writer;  // NOLINT: the model is written in its words
  return Model(18)
      .graph(Graph()
                 .input("x", kFloat, {"n", 2})
                 .node(Node("Add", {"x", "x"}, {"y"}))
                 .output("y", kFloat, {"n", 2})
                 .output("x", kFloat, {"n", 2}))
      .bytes();
}

// The digits' probabilities for an image of one number, with a precision.
std::vector<float> probabilities(const aglow_options* options) {
  aglow_model* model = loaded(kDigits, options);
  if (model == nullptr) return {};
  std::vector<float> image(aglow_input(model, 0)->bytes / sizeof(float), 0.4F);
  std::vector<float> result(aglow_output(model, 0)->bytes / sizeof(float));
  EXPECT_EQ(aglow_bind_input(model, 0, image.data(), image.size() * sizeof(float)), AGLOW_OK);
  EXPECT_EQ(aglow_bind_output(model, 0, result.data(), result.size() * sizeof(float)), AGLOW_OK);
  EXPECT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  aglow_free(model);
  return result;
}

TEST(CApi, TakesPrecisions) {
  aglow_options* options = aglow_options_new();
  ASSERT_EQ(aglow_options_set_backend(options, "interpreter"), AGLOW_OK);
  const std::vector<float> exact = probabilities(options);
  for (const char* precision : {"bf16", "int8-weights", "int4-weights"}) {
    ASSERT_EQ(aglow_options_set_precision(options, precision, nullptr), AGLOW_OK) << aglow_error_text();
    const std::vector<float> rounded = probabilities(options);
    // All matrices of the model are small, so that fewer bits gain nothing.
    EXPECT_EQ(rounded != exact, precision == std::string_view("bf16"));
    EXPECT_THAT(rounded, ::testing::Pointwise(::testing::FloatNear(0.05F), exact)) << precision;
  }
  ASSERT_EQ(aglow_options_set_precision(options, "bf16", "Conv,MatMul"), AGLOW_OK);
  EXPECT_EQ(probabilities(options), exact);
  ASSERT_EQ(aglow_options_set_precision(options, "float", nullptr), AGLOW_OK);
  EXPECT_EQ(probabilities(options), exact);
  EXPECT_EQ(aglow_options_set_precision(options, "int8", nullptr), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("'int8' is not a precision that needs no profile"));
  EXPECT_EQ(aglow_options_set_int8(options, "no such file", nullptr, nullptr, nullptr), AGLOW_FILE);
  aglow_options_free(options);
}

TEST(CApi, SessionsTakeAnySize) {
  const std::string file = anyRows();
  aglow_options* options = aglow_options_new();
  const int64_t sizes[] = {1, 4};
  EXPECT_EQ(aglow_options_prepare(options, "n", sizes, 2), AGLOW_OK) << aglow_error_text();
  EXPECT_EQ(aglow_options_set_padding(options, 1), AGLOW_OK);
  aglow_session* session = nullptr;
  ASSERT_EQ(aglow_session_open_memory(file.data(), file.size(), options, &session), AGLOW_OK) << aglow_error_text();
  aglow_options_free(options);
  for (int64_t rows : {1, 3, 6}) {
    std::vector<float> x(static_cast<size_t>(2 * rows), 1.5F);
    const int64_t dims[] = {rows, 2};
    const aglow_tensor input{.name = "x", .kind = AGLOW_FLOAT32, .rank = 2, .dims = dims, .data = x.data()};
    aglow_results* results = nullptr;
    ASSERT_EQ(aglow_session_run(session, &input, 1, &results), AGLOW_OK) << aglow_error_text();
    std::fill(x.begin(), x.end(), 0.0F);  // results do not hang on the caller's memory
    ASSERT_EQ(aglow_results_count(results), 2U);
    for (size_t i = 0; i < 2; ++i) {
      const aglow_tensor* y = aglow_results_get(results, i);
      EXPECT_THAT(std::vector<int64_t>(y->dims, y->dims + y->rank), ElementsAre(rows, 2));
      EXPECT_EQ(static_cast<const float*>(y->data)[2 * rows - 1], i == 0 ? 3.0F : 1.5F);
    }
    EXPECT_STREQ(aglow_results_get(results, 1)->name, "x");
    EXPECT_EQ(aglow_results_get(results, 2), nullptr);
    aglow_results_free(results);
  }
  aglow_session_close(session);
}

// A vectorizer, and maps of what it gives.
std::string mapsBothWays() {
  using namespace aglow::onnx_writer;
  return Model()
      .opsetImport("ai.onnx.ml", 1)
      .graph(Graph()
                 .input("m", Type::map(kString, Type::tensor(kFloat, {})))
                 .node(Node("DictVectorizer", {"m"}, {"row"})
                           .domain("ai.onnx.ml")
                           .attribute("string_vocabulary", std::vector<std::string>{"a", "b"}))
                 .node(Node("Concat", {"row", "row"}, {"rows"}).attribute("axis", 0))
                 .node(Node("ZipMap", {"rows"}, {"maps"})
                           .domain("ai.onnx.ml")
                           .attribute("classlabels_int64s", std::vector<int64_t>{7, 3}))
                 .output("maps", Type::sequence(Type::map(kInt64, Type::tensor(kFloat, {})))))
      .bytes();
}

TEST(CApi, SessionsTakeAndGiveMaps) {
  const std::string file = mapsBothWays();
  aglow_session* session = nullptr;
  ASSERT_EQ(aglow_session_open_memory(file.data(), file.size(), nullptr, &session), AGLOW_OK) << aglow_error_text();
  const int64_t dims[] = {3}, fewer[] = {2};
  const char* const keys[] = {"b", "c", "a"};
  const float values[] = {1, 2, 3};
  const aglow_tensor inputs[] = {{"m.keys", AGLOW_STRING, 1, dims, keys}, {"m.values", AGLOW_FLOAT32, 1, dims, values}};
  aglow_results* results = nullptr;
  ASSERT_EQ(aglow_session_run(session, inputs, 2, &results), AGLOW_OK) << aglow_error_text();
  ASSERT_EQ(aglow_results_count(results), 2U);
  const aglow_tensor *found = aglow_results_get(results, 0), *table = aglow_results_get(results, 1);
  EXPECT_STREQ(found->name, "maps.keys");
  EXPECT_EQ(found->kind, AGLOW_INT64);
  const auto* numbers = static_cast<const int64_t*>(found->data);
  EXPECT_THAT(std::vector<int64_t>(numbers, numbers + 2), ElementsAre(3, 7));
  EXPECT_STREQ(table->name, "maps.values");
  EXPECT_THAT(std::vector<int64_t>(table->dims, table->dims + table->rank), ElementsAre(2, 2));
  const auto* shares = static_cast<const float*>(table->data);
  EXPECT_THAT(std::vector<float>(shares, shares + 4), ElementsAre(1, 3, 1, 3));
  aglow_results_free(results);
  const aglow_tensor uneven[] = {inputs[0], {"m.values", AGLOW_FLOAT32, 1, fewer, values}};
  EXPECT_EQ(aglow_session_run(session, uneven, 2, &results), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("as many values, got string[3] and f32[2]"));
  EXPECT_EQ(aglow_session_run(session, inputs, 1, &results), AGLOW_USAGE);
  const char* const hole[] = {"b", nullptr, "a"};
  const aglow_tensor missing[] = {{"m.keys", AGLOW_STRING, 1, dims, hole}, inputs[1]};
  EXPECT_EQ(aglow_session_run(session, missing, 2, &results), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("string 1 is null"));
  aglow_session_close(session);
}

// A classifier with named classes.
std::string named() {
  using namespace aglow::onnx_writer;
  const std::vector<std::string> names = {"yes", "no"};
  return Model()
      .opsetImport("ai.onnx.ml", 1)
      .graph(
          Graph()
              .input("x", kFloat, {"n", 2})
              .node(Node("LinearClassifier", {"x"}, {"label", "scores"})
                        .domain("ai.onnx.ml")
                        .attribute("coefficients", std::vector<float>{1, 0, 0, 1})
                        .attribute("intercepts", std::vector<float>{0, 0})
                        .attribute("classlabels_strings", names))
              .node(Node("ZipMap", {"scores"}, {"maps"}).domain("ai.onnx.ml").attribute("classlabels_strings", names))
              .output("label", kString, {"n"})
              .output("maps", Type::sequence(Type::map(kString, Type::tensor(kFloat, {})))))
      .bytes();
}

TEST(CApi, ResultsHoldStrings) {
  const std::string file = named();
  aglow_session* session = nullptr;
  ASSERT_EQ(aglow_session_open_memory(file.data(), file.size(), nullptr, &session), AGLOW_OK) << aglow_error_text();
  for (const int64_t rows : {0, 3}) {
    const int64_t dims[] = {rows, 2};
    const float x[] = {1, 2, 4, 3, 0, 1};
    const aglow_tensor input{"x", AGLOW_FLOAT32, 2, dims, x};
    aglow_results* results = nullptr;
    ASSERT_EQ(aglow_session_run(session, &input, 1, &results), AGLOW_OK) << aglow_error_text();
    ASSERT_EQ(aglow_results_count(results), 3U);
    const aglow_tensor* label = aglow_results_get(results, 0);
    EXPECT_EQ(label->kind, AGLOW_STRING);
    EXPECT_THAT(std::vector<int64_t>(label->dims, label->dims + label->rank), ElementsAre(rows));
    const auto* words = static_cast<const char* const*>(label->data);
    if (rows > 0) EXPECT_THAT(std::vector<std::string>(words, words + rows), ElementsAre("no", "yes", "no"));
    const aglow_tensor* keys = aglow_results_get(results, 1);
    EXPECT_EQ(keys->kind, AGLOW_STRING);
    EXPECT_EQ(keys->dims[0], rows > 0 ? 2 : 0);
    EXPECT_EQ(aglow_results_get(results, 2)->dims[0], rows);
    aglow_results_free(results);
  }
  aglow_session_close(session);
}

TEST(CApi, ProgramsGiveNumbersWithLabels) {
  const std::string file = named();
  aglow_options* options = aglow_options_new();
  EXPECT_EQ(aglow_options_set_dim(options, "n", 2), AGLOW_OK);
  aglow_model* model = nullptr;
  ASSERT_EQ(aglow_load_memory(file.data(), file.size(), options, &model), AGLOW_OK) << aglow_error_text();
  aglow_options_free(options);
  const float x[] = {1, 2, 4, 3};
  int64_t label[2] = {};
  float scores[4] = {};
  ASSERT_EQ(aglow_bind_input(model, 0, x, sizeof(x)), AGLOW_OK);
  ASSERT_EQ(aglow_bind_output(model, 0, label, sizeof(label)), AGLOW_OK) << aglow_error_text();
  ASSERT_EQ(aglow_bind_output(model, 1, scores, sizeof(scores)), AGLOW_OK) << aglow_error_text();
  ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  EXPECT_EQ(aglow_output_keys(model, 0), nullptr);
  EXPECT_EQ(aglow_output_words(model, 1), nullptr);
  EXPECT_EQ(aglow_output_keys(model, 2), nullptr);
  ASSERT_NE(aglow_output_words(model, 0), nullptr);
  ASSERT_NE(aglow_output_keys(model, 1), nullptr);
  const auto* words = static_cast<const char* const*>(aglow_output_words(model, 0)->data);
  const auto* keys = static_cast<const char* const*>(aglow_output_keys(model, 1)->data);
  EXPECT_STREQ(words[label[0]], "no");
  EXPECT_STREQ(words[label[1]], "yes");
  EXPECT_THAT(std::vector<std::string>(keys, keys + 2), ElementsAre("yes", "no"));
  EXPECT_THAT(std::vector<float>(scores, scores + 4), ElementsAre(1, 2, 4, 3));
  aglow_free(model);
}

TEST(CApi, SessionsSayWhatDoesNotFit) {
  const std::string file = anyRows();
  aglow_session* session = nullptr;
  ASSERT_EQ(aglow_session_open_memory(file.data(), file.size(), nullptr, &session), AGLOW_OK) << aglow_error_text();
  const int64_t dims[] = {1, 3}, negative[] = {-1, 2};
  const float x[3] = {};
  aglow_results* results = nullptr;
  const auto refused = [&](aglow_tensor input, aglow_status status, const char* words) {
    EXPECT_EQ(aglow_session_run(session, &input, 1, &results), status);
    EXPECT_THAT(aglow_error_text(), HasSubstr(words));
    EXPECT_EQ(results, nullptr);
  };
  refused({"x", AGLOW_FLOAT32, 2, dims, x}, AGLOW_USAGE, "expected f32[n,2]");
  refused({"z", AGLOW_FLOAT32, 2, dims, x}, AGLOW_USAGE, "no input 'z'");
  refused({"x", AGLOW_FLOAT32, 2, dims, nullptr}, AGLOW_USAGE, "null");
  refused({"x", static_cast<aglow_kind>(99), 2, dims, x}, AGLOW_USAGE, "kind 99");
  EXPECT_EQ(aglow_session_run(session, nullptr, 0, &results), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("'x' (f32[n,2]) was not given"));
  const aglow_tensor bad{"x", AGLOW_FLOAT32, 2, negative, x};
  EXPECT_NE(aglow_session_run(session, &bad, 1, &results), AGLOW_OK);
  aglow_session_close(session);
  EXPECT_EQ(aglow_session_open("/nowhere.onnx", nullptr, &session), AGLOW_FILE);
  EXPECT_EQ(session, nullptr);
}

TEST(CApi, FunctionsAreSelectedByNameOverOneState) {
  aglow_model* model = loaded(writeGraph(kCounter));
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(aglow_num_functions(model), 2U);
  EXPECT_STREQ(aglow_function_name(model, 0), "add");
  EXPECT_EQ(aglow_function_name(model, 2), nullptr);
  // None is the only one, and none is named main.
  EXPECT_EQ(aglow_num_inputs(model), 0U);
  EXPECT_EQ(aglow_run(model), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("'add', 'reset'"));
  EXPECT_EQ(aglow_bind_input(model, 0, nullptr, 0), AGLOW_USAGE);
  EXPECT_EQ(aglow_select(model, "subtract"), AGLOW_USAGE);
  EXPECT_EQ(aglow_select(model, nullptr), AGLOW_USAGE);

  const float step[2] = {10, 20};
  float total[2] = {};
  ASSERT_EQ(aglow_select(model, "add"), AGLOW_OK) << aglow_error_text();
  ASSERT_EQ(aglow_bind_input(model, 0, step, sizeof(step)), AGLOW_OK);
  ASSERT_EQ(aglow_bind_output(model, 0, total, sizeof(total)), AGLOW_OK);
  ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  EXPECT_THAT(total, ElementsAre(21, 42));
  ASSERT_EQ(aglow_select(model, "reset"), AGLOW_OK);
  EXPECT_EQ(aglow_num_outputs(model), 0U);
  ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  // What was bound before is bound still.
  ASSERT_EQ(aglow_select(model, "add"), AGLOW_OK);
  ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  EXPECT_THAT(total, ElementsAre(10, 20));
  aglow_free(model);
}

TEST(CApi, StateIsReadSetAndReset) {
  aglow_model* model = loaded(writeGraph(kCounter));
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(aglow_num_states(model), 1U);
  EXPECT_STREQ(aglow_state(model, 0)->name, "count");
  EXPECT_EQ(aglow_state(model, 0)->bytes, 8U);
  EXPECT_EQ(aglow_state(model, 1), nullptr);
  EXPECT_EQ(aglow_find_state(model, "count"), 0);
  EXPECT_EQ(aglow_find_state(model, "total"), -1);
  float count[2] = {};
  ASSERT_EQ(aglow_get_state(model, 0, count, sizeof(count)), AGLOW_OK) << aglow_error_text();
  EXPECT_THAT(count, ElementsAre(1, 2));
  const float other[2] = {5, 6};
  ASSERT_EQ(aglow_set_state(model, 0, other, sizeof(other)), AGLOW_OK) << aglow_error_text();
  ASSERT_EQ(aglow_get_state(model, 0, count, sizeof(count)), AGLOW_OK);
  EXPECT_THAT(count, ElementsAre(5, 6));
  ASSERT_EQ(aglow_reset_state(model), AGLOW_OK);
  ASSERT_EQ(aglow_get_state(model, 0, count, sizeof(count)), AGLOW_OK);
  EXPECT_THAT(count, ElementsAre(1, 2));
  EXPECT_EQ(aglow_get_state(model, 1, count, sizeof(count)), AGLOW_USAGE);
  EXPECT_EQ(aglow_get_state(model, 0, count, 4), AGLOW_USAGE);
  EXPECT_EQ(aglow_set_state(model, 0, nullptr, sizeof(count)), AGLOW_USAGE);
  aglow_free(model);
}

TEST(CApi, AModelFileHasOneFunctionAndNoState) {
  aglow_model* model = loaded(kDigits);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(aglow_num_functions(model), 1U);
  EXPECT_STREQ(aglow_function_name(model, 0), "main");
  EXPECT_EQ(aglow_num_states(model), 0U);
  aglow_free(model);
}

// Without a word on backend and threads: the fastest there is, on every processor.
TEST(CApi, TakesTheDefaultBackend) {
  for (aglow_options* options : {static_cast<aglow_options*>(nullptr), aglow_options_new()}) {
    aglow_model* model = loaded(kDigits, options);
    ASSERT_NE(model, nullptr);
#ifdef AGLOW_LLVM
    EXPECT_STRNE(aglow_info(model)->target, "host");
    EXPECT_EQ(aglow_info(model)->threads, aglow::machineThreads());
#else
    EXPECT_STREQ(aglow_info(model)->target, "host");
#endif
    aglow_free(model);
    aglow_options_free(options);
  }
  aglow_options* options = aglow_options_new();
  ASSERT_EQ(aglow_options_set_backend(options, "interpreter"), AGLOW_OK);
  aglow_model* model = loaded(kDigits, options);
  ASSERT_NE(model, nullptr);
  EXPECT_STREQ(aglow_info(model)->target, "host");
  aglow_free(model);
  aglow_options_free(options);
}

// A constant that is there twice, and an input that is declared as a scalar.
std::string departing() {
  using namespace aglow::onnx_writer;  // NOLINT: the model is written in its words
  const Node two = Node("Constant", {}, {"two"}).attribute("value_float", 2.0F);
  return Model()
      .graph(Graph()
                 .input("x", kFloat, {})
                 .node(two)
                 .node(two)
                 .node(Node("Mul", {"x", "two"}, {"y"}))
                 .output("y", Type::unranked(kFloat)))
      .bytes();
}

TEST(CApi, RunsEndWhereTheyAreAskedTo) {
  aglow_options* options = aglow_options_new();
  ASSERT_EQ(aglow_options_set_backend(options, "interpreter"), AGLOW_OK);
  int stop = 0;
  const aglow_stop ask = [](void* context) { return *static_cast<int*>(context); };
  ASSERT_EQ(aglow_options_set_stop(options, ask, &stop), AGLOW_OK);
  EXPECT_EQ(aglow_options_set_stop(nullptr, ask, &stop), AGLOW_USAGE);
  aglow_model* model = loaded(writeGraph(kSums), options);
  ASSERT_NE(model, nullptr);
  float x[4] = {1, 2, 3, 4}, sum[4] = {};
  int64_t n[2] = {5, 6}, twice[2] = {};
  ASSERT_EQ(aglow_bind_input(model, 0, x, sizeof x), AGLOW_OK);
  ASSERT_EQ(aglow_bind_input(model, 1, n, sizeof n), AGLOW_OK);
  ASSERT_EQ(aglow_bind_output(model, 0, sum, sizeof sum), AGLOW_OK);
  ASSERT_EQ(aglow_bind_output(model, 1, twice, sizeof twice), AGLOW_OK);
  ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  EXPECT_EQ(sum[3], 8.0F);
  stop = 1;
  EXPECT_EQ(aglow_run(model), AGLOW_INTERRUPTED);
  EXPECT_THAT(aglow_error_text(), HasSubstr("error[E902]"));
  stop = 0;
  EXPECT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  aglow_free(model);
  aglow_options_free(options);
}

TEST(CApi, HearsOfDeparturesOrRefusesThem) {
  const std::string file = departing();
  std::vector<std::string> heard;
  aglow_options* options = aglow_options_new();
  const aglow_warning hear = [](const char* text, void* context) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(text);
  };
  ASSERT_EQ(aglow_options_set_warning(options, hear, &heard), AGLOW_OK);
  aglow_session* session = nullptr;
  ASSERT_EQ(aglow_session_open_memory(file.data(), file.size(), options, &session), AGLOW_OK) << aglow_error_text();
  EXPECT_THAT(heard, ElementsAre(HasSubstr("warning[E204] value 'two' is defined twice")));
  const float x[2] = {1, 2};
  const int64_t dims[] = {2};
  for (int run = 0; run < 2; ++run) {
    const aglow_tensor input{"x", AGLOW_FLOAT32, 1, dims, x};
    aglow_results* results = nullptr;
    ASSERT_EQ(aglow_session_run(session, &input, 1, &results), AGLOW_OK) << aglow_error_text();
    EXPECT_EQ(static_cast<const float*>(aglow_results_get(results, 0)->data)[1], 4.0F);
    aglow_results_free(results);
  }
  EXPECT_THAT(heard, ElementsAre(HasSubstr("'two'"), HasSubstr("warning[E102] input 'x' has shape [2]")));
  aglow_session_close(session);
  heard.clear();
  aglow_model* model = nullptr;
  ASSERT_EQ(aglow_load_memory(file.data(), file.size(), options, &model), AGLOW_OK) << aglow_error_text();
  EXPECT_THAT(heard, ElementsAre(HasSubstr("'two'")));
  aglow_free(model);
  heard.clear();
  ASSERT_EQ(aglow_options_set_strict(options, 1), AGLOW_OK);
  ASSERT_EQ(aglow_options_set_tune(options, 0), AGLOW_OK);
  ASSERT_EQ(aglow_options_set_tune(options, -1), AGLOW_USAGE);
  ASSERT_EQ(aglow_options_set_f64_pairs(nullptr, 1), AGLOW_USAGE);
  ASSERT_EQ(aglow_options_set_f64_pairs(options, 0), AGLOW_OK);
  EXPECT_EQ(aglow_load_memory(file.data(), file.size(), options, &model), AGLOW_BAD_MODEL);
  EXPECT_EQ(aglow_session_open_memory(file.data(), file.size(), options, &session), AGLOW_BAD_MODEL);
  EXPECT_THAT(aglow_error_text(), HasSubstr("error[E204] value 'two' is defined twice"));
  EXPECT_TRUE(heard.empty());
  aglow_options_free(options);
}

TEST(CppApi, HearsOfDeparturesAsLongAsTheSessionLives) {
  const std::string file = departing();
  std::vector<std::string> heard;
  const auto hear = [&heard](const std::string& text) { heard.push_back(text); };
  const aglow::Session session(file.data(), file.size(), std::move(aglow::Options().onWarning(hear)));
  const float x[2] = {1, 2};
  const std::vector<int64_t> dims = {2};
  session.run({{"x", AGLOW_FLOAT32, 1, dims.data(), x}});
  EXPECT_THAT(heard, ElementsAre(HasSubstr("'two'"), HasSubstr("'x'")));
  EXPECT_THROW(aglow::Session(file.data(), file.size(), std::move(aglow::Options().strict())), aglow::Error);
}

}  // namespace
