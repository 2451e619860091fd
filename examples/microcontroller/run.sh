#!/usr/bin/env bash
# run.sh [IMAGE.npy]: compiles the network and the program for a Cortex-M4, shows their sizes, and runs them under qemu.
# Needs arm-none-eabi-gcc with newlib, and qemu-system-arm. AGLOW names the program, OUT the folder for what is made.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
image=${1:-$here/../digits/images/3.npy}
aglow=${AGLOW:-$here/../../build/aglow}
out=${OUT:-$here/../../build/microcontroller}
mkdir -p "$out"
"$aglow" compile "$here/../digits/digits.onnx" -o "$out" --emit c --weights c
# The 64 floats of the image, as they stand at the end of the file.
{
  echo "static const float image[64] = {"
  tail -c 256 "$image" | od -An -v -t f4 -w16 | sed 's/ \+\([^ ]\+\)/\1f,/g; s/\([0-9]\)f,/\1.f,/g; s/\(\.[0-9e+-]*\)\.f/\1f/g'
  echo "};"
} >"$out/image.h"
flags=(-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2 -std=c99 -Wall -Wextra -I"$out")
arm-none-eabi-gcc "${flags[@]}" -ffunction-sections -Wl,--gc-sections -nostartfiles --specs=nosys.specs -T "$here/memory.ld" \
  "$here/main.c" "$out/digits.c" "$out/digits_weights.c" -lm -o "$out/digits.elf"
arm-none-eabi-size "$out/digits.elf"
exec timeout 60 qemu-system-arm -M mps2-an386 -nographic -semihosting-config enable=on,target=native -kernel "$out/digits.elf"
