// Strings at run time: numbers as text and back, the numbers that stand for strings, upper and lower case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamic/strings/letter_case.h"
#include "dynamic/strings/numbers.h"
#include "dynamic/strings/regex.h"
#include "dynamic/strings/vocabulary.h"

namespace aglow::strings {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts(ElemKind kind, const std::vector<double>& values) {
  return textOf(Tensor::of(Type(kind, Shape{std::ssize(values)}), values)).strings();
}

StringTensor list(std::vector<std::string> strings) {
  const auto count = std::ssize(strings);
  return {Shape{count}, std::move(strings)};
}

std::vector<double> reals(ElemKind kind, std::vector<std::string> strings) {
  const auto tensor = numbersOf(list(std::move(strings)), kind);
  return tensor.ok() ? tensor->doubles() : std::vector<double>{-999};
}

TEST(StringNumbers, AreTheShortestPlainTextOfTheirKind) {
  EXPECT_THAT(texts(ElemKind::Float32, {1, -0.5, 0.1, 3.14159274, 1e20, 1e-7}),
              ElementsAre("1", "-0.5", "0.1", "3.1415927", "100000002004087734272", "0.0000001"));
  EXPECT_THAT(texts(ElemKind::Float64, {0.1, 1e-7, 314.15926}), ElementsAre("0.1", "0.0000001", "314.15926"));
  // As many digits as f16 and bf16 have, not those of the float that is nearest to them.
  EXPECT_THAT(texts(ElemKind::Float16, {0.1, 65504, 0}), ElementsAre("0.1", "65504", "0"));
  EXPECT_THAT(texts(ElemKind::BFloat16, {0.1, 3.140625}), ElementsAre("0.1", "3.14"));
  EXPECT_THAT(texts(ElemKind::Float32, {INFINITY, -INFINITY, NAN}), ElementsAre("INF", "-INF", "NaN"));
  EXPECT_THAT(texts(ElemKind::Int8, {-128, 0}), ElementsAre("-128", "0"));
  EXPECT_THAT(texts(ElemKind::Bool, {1, 0}), ElementsAre("1", "0"));
  const Tensor large = Tensor::fromInts(Type(ElemKind::UInt64, Shape{1}), {-1});
  EXPECT_THAT(textOf(large).strings(), ElementsAre("18446744073709551615"));
}

TEST(StringNumbers, AreReadInPlainAndScientificNotation) {
  EXPECT_THAT(reals(ElemKind::Float32, {"3.25", "1e-5", "1E8", " +2 ", "-7"}),
              ElementsAre(3.25, double{1e-5F}, 1e8, 2, -7));
  EXPECT_THAT(reals(ElemKind::Float64, {"+INF", "inf", "-Inf", "1e999", "-1e999", "1e-999"}),
              ElementsAre(INFINITY, INFINITY, -INFINITY, INFINITY, -INFINITY, 0));
  EXPECT_TRUE(std::isnan(reals(ElemKind::Float32, {"nAn"}).front()));
  EXPECT_THAT(reals(ElemKind::Float32, {"1e39", "1e-50"}), ElementsAre(INFINITY, 0));
  EXPECT_THAT(numbersOf(list({"100.5", "-9223372036854775808", "1e3", "-0.9"}), ElemKind::Int64)->toInts(),
              ElementsAre(100, INT64_MIN, 1000, 0));
  EXPECT_THAT(numbersOf(list({"18446744073709551615"}), ElemKind::UInt64)->toInts(), ElementsAre(-1));
}

TEST(StringNumbers, RefuseWhatIsNoNumberOfTheKind) {
  for (const char* text : {"", "Hello World!", "1x", "0x10", "--1", "+-1", "1 2", "1,5", "e5"})
    for (const ElemKind kind : {ElemKind::Float32, ElemKind::Float64, ElemKind::Int64, ElemKind::UInt64}) {
      const auto result = numbersOf(list({text}), kind);
      ASSERT_FALSE(result.ok()) << text;
      EXPECT_EQ(result.error().code, Code::RuntimeValue);
    }
  for (const char* text : {"9223372036854775808", "nan", "1e30", "-inf"})
    EXPECT_FALSE(numbersOf(list({text}), ElemKind::Int64).ok()) << text;
  for (const char* text : {"-1", "18446744073709551616"})
    EXPECT_FALSE(numbersOf(list({text}), ElemKind::UInt64).ok()) << text;
}

TEST(Vocabulary, NumbersFollowTheOrderOfTheStrings) {
  const Vocabulary words({"pear", "apple", "\xff\xfe", "pear", std::string("a\0b", 3)});
  const StringTensor strings = list({"pear", "", "apple", "plum", std::string("a\0b", 3), "a", "\xff\xfe"});
  EXPECT_THAT(words.numbers(strings).toInts(), ElementsAre(3, 0, 2, -1, 1, -1, 4));
  const auto back = words.strings(Tensor::ints({3, 0, 4, 1}));
  ASSERT_TRUE(back.ok());
  EXPECT_THAT(back->strings(), ElementsAre("pear", "", "\xff\xfe", std::string("a\0b", 3)));
}

TEST(Vocabulary, RefusesNumbersThatAreNoStrings) {
  const Vocabulary words({"a"});
  EXPECT_EQ(words.strings(Tensor::ints({2})).error().code, Code::RuntimeValue);
  EXPECT_EQ(words.strings(Tensor::ints({-1})).error().code, Code::RuntimeValue);
  EXPECT_EQ(words.strings(Tensor::scalar(ElemKind::Float32, 0)).error().code, Code::BadNode);
}

TEST(Vocabulary, KeepsSequencesAndOtherValues) {
  const Vocabulary words({"a", "b"});
  const ModelValue sequence = ModelValue::stringSequence({list({"b"}), list({"a", ""})});
  const ModelValue numbers = words.numbers(sequence);
  ASSERT_TRUE(numbers.isSequence && !numbers.hasStrings() && numbers.tensors.size() == 2);
  EXPECT_THAT(numbers.tensors[1].toInts(), ElementsAre(1, 0));
  const auto back = words.strings(numbers);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->strings, sequence.strings);
  EXPECT_TRUE(words.numbers(ModelValue::absent()).none);
}

TEST(LetterCase, TurnsLettersOfAllLanguages) {
  EXPECT_EQ(inCase("Grüße, ÄÖ Ж", LetterCase::Lower, "en_US"), "grüße, äö ж");
  EXPECT_EQ(inCase("äöж1", LetterCase::Upper, "en_US"), "ÄÖЖ1");
  EXPECT_EQ(inCase("TITLE i", LetterCase::Lower, "tr_TR"), "tıtle i");
  EXPECT_EQ(inCase("i", LetterCase::Upper, "tr_TR.UTF-8"), "İ");
  EXPECT_EQ(inCase("aÄ", LetterCase::Upper, "C"), "AÄ");
  EXPECT_EQ(inCase("äb", LetterCase::Upper, "C"), "äB");
}

TEST(LetterCase, LeavesBytesThatAreNoText) {
  const std::string bytes =
      "\xff"
      "a\xc3"
      "b\xed\xa0\x80";
  EXPECT_EQ(inCase(bytes, LetterCase::Upper, "en_US"),
            "\xff"
            "A\xc3"
            "B\xed\xa0\x80");
  EXPECT_EQ(inCase(std::string("a\0b", 3), LetterCase::Upper, "en_US"), std::string("A\0B", 3));
}

TEST(Regex, MatchesWholeTexts) {
  const auto pattern = Pattern::create("a+b?");
  if (!pattern.ok() && pattern.error().code == Code::UnsupportedFeature) GTEST_SKIP() << "built without RE2";
  ASSERT_TRUE(pattern.ok());
  for (const std::string text : {"aab", "a"}) EXPECT_TRUE(pattern->matchesAll(text)) << text;
  for (const std::string text : {"aabc", "", "a\n"}) EXPECT_FALSE(pattern->matchesAll(text)) << text;
  EXPECT_EQ(Pattern::create("(unclosed").error().code, Code::BadNode);
}

TEST(Regex, FindsTheFirstOrTheLongest) {
  const auto first = Pattern::create("a|ab"), longest = Pattern::create("a|ab", Pattern::Prefer::Longest);
  if (!first.ok() && first.error().code == Code::UnsupportedFeature) GTEST_SKIP() << "built without RE2";
  ASSERT_TRUE(first.ok() && longest.ok());
  const auto lengthAt = [](const Pattern& pattern, size_t from) {
    const auto found = pattern.find("xabab", from);
    return found ? std::pair(found->begin, found->end - found->begin) : std::pair(size_t{9}, size_t{0});
  };
  EXPECT_EQ(lengthAt(*first, 0), std::pair(size_t{1}, size_t{1}));
  EXPECT_EQ(lengthAt(*longest, 0), std::pair(size_t{1}, size_t{2}));
  EXPECT_EQ(lengthAt(*longest, 2), std::pair(size_t{3}, size_t{2}));
  EXPECT_EQ(lengthAt(*longest, 4), std::pair(size_t{9}, size_t{0}));
  EXPECT_EQ(lengthAt(*longest, 6), std::pair(size_t{9}, size_t{0}));  // at the end of the text
}

}  // namespace
}  // namespace aglow::strings
