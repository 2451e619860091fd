// The mathematical functions compiled with the flags of all tests (without fma on x86), and that results do not depend
// on the number of lanes; integer arithmetic of the kernel library.
#ifdef __clang__  // kernels are written in clang's vectors
#include "kernels_math_functions.h"

#include <array>
#include <type_traits>

#include "backends/cpu/kernels/math/integers.h"
#include "kernels_math_accuracy.h"
#include "reference/arithmetic.h"

namespace aglow::cpu {
namespace {

AGLOW_MATH_TESTS(KernelsMath, true)

TEST(KernelsMathWidths, GiveTheSameBits) {
  std::vector<float> xs = edgeValues();
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1048583)
    xs.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  xs.resize(xs.size() / kStep * kStep);
  const std::vector<float> ys(xs.rbegin(), xs.rend());
  const auto expectSame = [&](const char* name, auto wide, auto... narrower) {
    for (size_t first = 0; first < xs.size(); first += kStep) {
      const auto run = [&](auto kernel) {
        std::array<float, kStep> out{};
        if constexpr (std::is_invocable_v<decltype(kernel), const float*, float*>)
          kernel(xs.data() + first, out.data());
        else
          kernel(xs.data() + first, ys.data() + first, out.data());
        std::array<uint32_t, kStep> bits{};
        for (size_t i = 0; i < kStep; ++i) bits[i] = std::isnan(out[i]) ? ~0u : std::bit_cast<uint32_t>(out[i]);
        return bits;
      };
      const auto expected = run(wide);
      ASSERT_TRUE(((run(narrower) == expected) && ...)) << name << " from " << xs[first];
    }
  };
#define AGLOW_EXPECT_SAME(NAME) expectSame(#NAME, NAME##Kernel<16>, NAME##Kernel<8>, NAME##Kernel<4>, NAME##Kernel<1>)
  AGLOW_EXPECT_SAME(exp);
  AGLOW_EXPECT_SAME(expFlushed);
  AGLOW_EXPECT_SAME(expm1);
  AGLOW_EXPECT_SAME(log);
  AGLOW_EXPECT_SAME(log1p);
  AGLOW_EXPECT_SAME(sin);
  AGLOW_EXPECT_SAME(cos);
  AGLOW_EXPECT_SAME(atan);
  AGLOW_EXPECT_SAME(tanh);
  AGLOW_EXPECT_SAME(erf);
  AGLOW_EXPECT_SAME(pow);
  AGLOW_EXPECT_SAME(rem);
#undef AGLOW_EXPECT_SAME
}

TEST(KernelsMathRange, TanhAndErfStayWithinOne) {
  for (float x = 1; x < 12; x += 0x1p-12f) {
    float in[kStep], out[kStep];
    std::fill(in, in + kStep, x);
    tanhKernel<16>(in, out);
    ASSERT_LE(out[0], 1.0f) << x;
    erfKernel<16>(in, out);
    ASSERT_LE(out[0], 1.0f) << x;
  }
}

template <class I>
void checkIntegers() {
  constexpr I kLow = std::numeric_limits<I>::min(), kHigh = std::numeric_limits<I>::max();
  const I values[] = {0,
                      1,
                      2,
                      3,
                      7,
                      10,
                      63,
                      64,
                      static_cast<I>(-1),
                      static_cast<I>(-2),
                      static_cast<I>(-7),
                      kLow,
                      kLow + 1,
                      kHigh,
                      kHigh - 1,
                      kHigh / 3};
  for (const I a : values)
    for (const I b : values) {
      EXPECT_EQ(divided(a, b), aglow::quotient(a, b)) << a << " " << b;
      EXPECT_EQ(cpu::remainder(a, b), aglow::remainder(a, b)) << a << " " << b;
      EXPECT_EQ(raised(a, b), aglow::power(a, b)) << a << " " << b;
    }
}

TEST(KernelsMathIntegers, AgreeWithTheReference) {
  checkIntegers<int64_t>();
  checkIntegers<uint64_t>();
}

}  // namespace
}  // namespace aglow::cpu
#endif
