# Writes a source with a hash of everything that decides on generated code: -DROOT=... -DLIBRARY=... -DOUT=...
file(GLOB_RECURSE files ${ROOT}/src/backends/cpu/code/* ${ROOT}/src/backends/cpu/llvm/* ${ROOT}/src/backends/cpu/kernels/*
     ${ROOT}/src/codegen/* ${ROOT}/src/ops/*)
list(SORT files)
set(hashes "")
foreach(file ${files} ${LIBRARY})
  file(SHA256 ${file} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 all "${hashes}")
file(WRITE ${OUT} "namespace aglow::codegen {\nextern const char* const kCodeHash;\nconst char* const kCodeHash = \"${all}\";\n}\n")
