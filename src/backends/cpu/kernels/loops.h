// How loops and functions of kernels are to be compiled.
#pragma once

#define AGLOW_INLINE __attribute__((always_inline)) inline
#define AGLOW_UNROLL _Pragma("clang loop unroll(full)")
#define AGLOW_ROLLED _Pragma("clang loop unroll(disable)")
