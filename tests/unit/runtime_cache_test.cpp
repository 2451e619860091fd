// What is kept by key: keys tell apart what has to be, things are made once and the ones not used for longest go.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "loaded_network.h"
#include "runtime/key.h"
#include "runtime/keyed_cache.h"
#include "runtime/network.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using Of = Key::Of;

template <class... Parts>
std::string keyOf(const Parts&... parts) {
  Key key;
  (key.add(parts), ...);
  return key.bytes();
}

std::string keyOf(const ModelValue& value, Of what) {
  Key key;
  key.add(value, what);
  return key.bytes();
}

Tensor floats(std::vector<int64_t> dims, double value) {
  const Type type(ElemKind::Float32, Shape(std::move(dims)));
  return Tensor::fromDoubles(type, std::vector<double>(static_cast<size_t>(type.elements()), value));
}

TEST(Key, TellsTypesApart) {
  const Type f(ElemKind::Float32, Shape{2, 3});
  EXPECT_EQ(keyOf(f), keyOf(Type(ElemKind::Float32, Shape{2, 3})));
  for (const Type& other : {Type(ElemKind::Int32, Shape{2, 3}), Type(ElemKind::Float32, Shape{3, 2}),
                            Type(ElemKind::Float32, Shape{6}), Type(ElemKind::Float32, Shape{2, 3, 1})})
    EXPECT_NE(keyOf(f), keyOf(other)) << other.text();
  const auto quantized = [](float scale, int32_t offset) {
    return *Type::quantized(ElemKind::QInt8, Shape{2}, {.scales = {scale}, .offsets = {offset}});
  };
  EXPECT_EQ(keyOf(quantized(0.5f, 1)), keyOf(quantized(0.5f, 1)));
  EXPECT_NE(keyOf(quantized(0.5f, 1)), keyOf(quantized(0.25f, 1)));
  EXPECT_NE(keyOf(quantized(0.5f, 1)), keyOf(quantized(0.5f, 2)));
  const std::string ab = "ab", c = "c", a = "a", bc = "bc";
  EXPECT_NE(keyOf(ab, c), keyOf(a, bc));
}

TEST(Key, TakesOfValuesWhatTheCodeDependsOn) {
  const ModelValue one = ModelValue::of(floats({2}, 1)), same = ModelValue::of(floats({2}, 1)),
                   two = ModelValue::of(floats({2}, 2));
  EXPECT_EQ(keyOf(one, Of::Type), keyOf(two, Of::Type));
  for (const Of what : {Of::Constant, Of::Bytes}) {
    EXPECT_EQ(keyOf(one, what), keyOf(same, what));
    EXPECT_NE(keyOf(one, what), keyOf(two, what));
  }
  // Large constants by their address, but what callers may change by its bytes.
  const ModelValue large = ModelValue::of(floats({2000}, 1)), other = ModelValue::of(floats({2000}, 1));
  EXPECT_EQ(keyOf(large, Of::Constant), keyOf(large, Of::Constant));
  EXPECT_NE(keyOf(large, Of::Constant), keyOf(other, Of::Constant));
  EXPECT_EQ(keyOf(large, Of::Bytes), keyOf(other, Of::Bytes));

  EXPECT_NE(keyOf(ModelValue::absent(), Of::Type), keyOf(ModelValue::sequence({}), Of::Type));
  EXPECT_NE(keyOf(one, Of::Type), keyOf(ModelValue::sequence({floats({2}, 1)}), Of::Type));
}

std::shared_ptr<Network> scaled(double factor) {
  return testing_support::loadedNetwork(
      "module { placeholder @x : f32[2] placeholder @y : f32[2] constant @c : f32[2] = [" + std::to_string(factor) +
      ", " + std::to_string(factor) +
      "] func @up { %p = Mul(@x, @c) Save(%p, @y) } func @down { %q = Div(@x, @c) Save(%q, @y) } }");
}

std::vector<double> run(Network& network, std::string_view function) {
  const std::map<std::string, ModelValue> values = {{"x", ModelValue::of(floats({2}, 8))}};
  return network.run(*network.find(function), valuesIn(values))->at(0).tensor().doubles();
}

TEST(KeyedCache, MakesEachNetworkOnceForAllThreads) {
  KeyedCache<Network> cache(8);
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const int factor = 1 << ((i + t) % 3);
        auto network = cache.findOrMake(std::to_string(factor), [&]() -> Diagnosed<std::shared_ptr<Network>> {
          ++made;
          return scaled(factor);
        });
        ASSERT_TRUE(network.ok());
        EXPECT_THAT(run(**network, "up"), ElementsAre(8 * factor, 8 * factor));
        EXPECT_THAT(run(**network, "down"), ElementsAre(8.0 / factor, 8.0 / factor));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 3);
  EXPECT_EQ(cache.size(), 3u);
}

TEST(KeyedCache, WhatWasNotUsedForLongestGoes) {
  KeyedCache<int> cache(2);
  std::string made;
  const auto get = [&](char key) {
    return *cache.findOrMake(std::string(1, key), [&]() -> Diagnosed<std::shared_ptr<int>> {
      made += key;
      return std::make_shared<int>(key);
    });
  };
  const std::shared_ptr<int> held = get('a');
  get('b');
  get('a');
  get('c');  // b goes
  EXPECT_EQ(cache.size(), 2u);
  get('a');
  get('b');  // c goes
  get('a');
  EXPECT_EQ(made, "abcb");
  get('c');
  get('d');  // a goes, but lives while somebody holds it
  EXPECT_EQ(*held, 'a');
  EXPECT_NE(get('a'), held);
}

TEST(KeyedCache, FaultsAreNotKept) {
  KeyedCache<int> cache(2);
  const auto failed = cache.findOrMake("k", []() -> Diagnosed<std::shared_ptr<int>> {
    return Error{.code = Code::OutOfMemory, .message = "no memory"};
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.diagnostics().errors().front().code, Code::OutOfMemory);
  auto made = cache.findOrMake("k", []() -> Diagnosed<std::shared_ptr<int>> { return std::make_shared<int>(7); });
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(**made, 7);
}

}  // namespace
}  // namespace aglow
