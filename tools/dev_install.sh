# shellcheck shell=bash disable=SC2034
# Sourced by ./dev: messages, and the installation of what is missing on the machine.

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' PLAIN=$'\e[0m'
else BOLD='' DIM='' RED='' PLAIN=''; fi

STEP_START=$SECONDS
step() { STEP_START=$SECONDS; printf '%s==> %s%s\n' "$BOLD" "$*" "$PLAIN"; }
took() { printf '%s    %d s%s\n' "$DIM" $(( SECONDS - STEP_START )) "$PLAIN"; }
die() { printf '%sdev: %s%s\n' "$RED" "$*" "$PLAIN" >&2; exit 1; }

# package | why; the names are the same in Debian 12 and Ubuntu 24.04.
PACKAGES_build='
git                 | sources
ca-certificates     | downloads over https
python3             | small build and demo scripts
cmake               | configures the build
ninja-build         | runs the build
clang-19            | compiler, also of the kernel library
gcc                 | compiler of C programs that use bundles
llvm-19-dev         | code generation
llvm-19             | links the kernel library
lld-19              | linker
libfmt-dev          | text formatting
libprotozero-dev    | reads ONNX files
libcli11-dev        | command line
libre2-dev          | regular expressions in models
nlohmann-json3-dev  | JSON output
libjpeg-dev         | image files
libpng-dev          | image files
libwebp-dev         | image files
libtiff-dev         | image files
libopenjp2-7-dev    | image files
libgtest-dev        | unit tests
libgmock-dev        | unit tests
libbenchmark-dev    | benchmarks
'
PACKAGES_serve='
pkg-config          | finds libraries
libboost-dev        | HTTP of the server (Beast)
libssl-dev          | TLS of the server
libgrpc++-dev       | gRPC of the server
protobuf-compiler-grpc | its messages
protobuf-compiler   | its messages
libprotobuf-dev     | its messages
libsimdjson-dev     | reads requests
'
PACKAGES_test='
llvm-19-tools       | FileCheck for the golden tests
libclang-rt-19-dev  | sanitizers
clang-format-19     | formatting check
clang-tidy-19       | static analysis
python3-venv        | Python environment of the tests
python3-dev         | Python module
qemu-user           | runs code for other processors
gcc-aarch64-linux-gnu | links it
libc6-dev-arm64-cross | links it
gdb                 | tests debug information
binutils            | tests what objects hold
ocl-icd-libopencl1  | finds drivers of OpenCL
pocl-opencl-icd     | an OpenCL device on every processor
ocl-icd-opencl-dev  | links bundles for devices
opencl-c-headers    | compiles them
oclgrind            | one that looks at every access
clang-15            | makes SPIR-V of kernels
llvm-spirv-15       | with this
spirv-tools         | checks it
wasi-libc           | the C library of WebAssembly
libclang-rt-19-dev-wasm32 | links it
'
PACKAGES_release='
python3-venv        | Python environments that build wheels
python3-dev         | Python module
dpkg-dev            | Debian packages
liblerc-dev         | linked in
libzstd-dev         | linked in
liblzma-dev         | linked in
libdeflate-dev      | linked in
zlib1g-dev          | linked in
'
# For tests of pages; Ubuntu has no browser among its packages, and tests that need one are left out there.
PACKAGES_browser='
chromium            | a browser
chromium-driver     | lets tests steer it
'
on_debian() { [[ $(. /etc/os-release 2>/dev/null && echo "${ID:-}") == debian ]]; }

installed() { [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ?i* ]]; }

# need GROUP...: installs the packages of the groups that are not there yet; touches no package list otherwise.
need() {
  local group table line package missing=() why=() as_root=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    [[ -n ${AGLOW_NO_INSTALL:-} ]] && return
    die "no apt on this system (Debian 12 and Ubuntu 24.04 are known to work). Install the tools listed in
     tools/dev_install.sh by other means, then set AGLOW_NO_INSTALL=1"
  fi
  for group in "$@"; do
    table=PACKAGES_$group
    while IFS='|' read -r package line; do
      package=${package// /}
      if [[ -n $package ]] && ! installed "$package"; then
        missing+=("$package")
        why+=("    $(printf '%-20s' "$package")$line")
      fi
    done <<<"${!table}"
  done
  (( ${#missing[@]} == 0 )) && return
  step "installing ${#missing[@]} packages with apt-get"
  printf '%s\n' "${why[@]}"
  if [[ -n ${AGLOW_NO_INSTALL:-} ]]; then die "AGLOW_NO_INSTALL is set; install them with: apt-get install ${missing[*]}"; fi
  if (( EUID != 0 )); then
    command -v sudo >/dev/null || die "neither root nor sudo; run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update </dev/null || die "the package lists cannot be fetched: is the machine offline?"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null ||
    die "installing failed. Offline, or a release without these packages? (Debian 12 and Ubuntu 24.04 with 'universe' have them)"
  took
}

# need_python [FOLDER REQUIREMENTS]: Python packages in a folder of their own, by default those of the tests in
# build/venv; installed again when the list of requirements changes.
need_python() {
  local folder=${1:-build/venv} requirements=${2:-tools/requirements.txt}
  cmp -s "$requirements" "$folder/requirements.txt" && return
  step "installing Python packages into $folder ($requirements)"
  mkdir -p build
  python3 -m venv --clear "$folder" || die "python3 cannot make a virtual environment"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" </dev/null ||
    die "pip failed: is the machine offline, or Python older than 3.11?"
  cp "$requirements" "$folder/requirements.txt"
  took
}
