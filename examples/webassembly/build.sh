#!/usr/bin/env bash
# build.sh: digits.wasm, and digits.html with all of it inside. Needs clang with wasm-ld, wasi-libc and its compiler library.
# AGLOW names the program, CLANG the compiler, OUT the folder for what is made.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
aglow=${AGLOW:-$here/../../build/aglow}
out=${OUT:-$here/../../build/webassembly}
mkdir -p "$out"
"$aglow" compile "$here/../digits/digits.onnx" -o "$out" --emit c --weights c
"${CLANG:-clang-19}" --target=wasm32-wasi --sysroot=/usr -mexec-model=reactor -nostartfiles -O3 -msimd128 -std=c99 -I"$out" \
  -I/usr/include/wasm32-wasi -L/usr/lib/wasm32-wasi -Wl,--no-entry,--strip-all \
  "$here/digits_page.c" "$out/digits.c" "$out/digits_weights.c" -lm -o "$out/digits.wasm"
python3 - "$here" "$out" <<'PYTHON'
import base64, pathlib, sys
here, out = map(pathlib.Path, sys.argv[1:])
page = (here / "page.html").read_text()
page = page.replace("/*DIGITS_JS*/", (here / "digits.js").read_text())
page = page.replace("/*DIGITS_WASM*/", base64.b64encode((out / "digits.wasm").read_bytes()).decode())
(out / "digits.html").write_text(page)
PYTHON
ls -l "$out/digits.wasm" "$out/digits.html"
