# The CPU backend: LLVM, and the kernel library (src/backends/cpu/kernels/**/*.kernel.cpp) as bitcode inside the program.
# The bitcode serves every target, so it is compiled with the widest vectors as register types and carries no instruction
# set of its own: generated code sets that when it clones a kernel. Loops over lanes are unrolled here
# (-fno-unroll-loops would mark each as one that nobody may unroll later).
set(LLVM_ROOT /usr/lib/llvm-19 CACHE PATH "Where LLVM 19 is installed")
find_path(LLVM_INCLUDE_DIR llvm/IR/Module.h HINTS ${LLVM_ROOT}/include REQUIRED)
if(NOT AGLOW_STATIC)
  find_library(LLVM_SHARED_LIBRARY NAMES LLVM-19 HINTS ${LLVM_ROOT}/lib REQUIRED)
  set(LLVM_LIBRARIES ${LLVM_SHARED_LIBRARY})
endif()
file(STRINGS ${LLVM_INCLUDE_DIR}/llvm/Config/llvm-config.h LLVM_VERSION REGEX "define LLVM_VERSION_STRING")
string(REGEX MATCH "[0-9]+[.0-9]+" LLVM_VERSION "${LLVM_VERSION}")
find_program(KERNEL_CLANG NAMES clang++-19 HINTS ${LLVM_ROOT}/bin REQUIRED)
find_program(KERNEL_LINK NAMES llvm-link-19 llvm-link HINTS ${LLVM_ROOT}/bin REQUIRED)

set(KERNEL_FOLDER ${CMAKE_BINARY_DIR}/kernels)
file(MAKE_DIRECTORY ${KERNEL_FOLDER})
set(AGLOW_KERNELS "" CACHE FILEPATH "The kernel library of another build of the same sources, instead of one of its own")
if(AGLOW_KERNELS)
  set(KERNEL_LIBRARY ${AGLOW_KERNELS})
else()
  set(KERNEL_FLAGS --target=x86_64-linux-gnu -mavx512f -mavx512vl -mavx512bw -mavx512dq -std=c++20 -O2 -emit-llvm -c
      -ffreestanding -fno-exceptions -fno-rtti -fno-vectorize -fno-slp-vectorize -fno-stack-protector
      -fno-math-errno -ffp-contract=on -fno-builtin -fno-asynchronous-unwind-tables -Wall -Wextra -Wshadow -Werror -I${CMAKE_SOURCE_DIR}/src)

  file(GLOB_RECURSE KERNEL_SOURCES CONFIGURE_DEPENDS src/backends/cpu/kernels/*.kernel.cpp)
  file(GLOB_RECURSE KERNEL_HEADERS CONFIGURE_DEPENDS src/backends/cpu/kernels/*.h)
  foreach(source ${KERNEL_SOURCES})
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src/backends/cpu/kernels ${source})
    string(REPLACE "/" "_" name ${name})
    set(bitcode ${KERNEL_FOLDER}/${name}.bc)
    add_custom_command(OUTPUT ${bitcode} COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${KERNEL_CLANG} ${KERNEL_FLAGS} -MD -MF ${bitcode}.d ${source} -o ${bitcode}
                       DEPENDS ${source} DEPFILE ${bitcode}.d COMMENT "kernel ${name}" VERBATIM)
    list(APPEND KERNEL_BITCODE ${bitcode})
  endforeach()
  set(KERNEL_LIBRARY ${KERNEL_FOLDER}/library.bc)
  add_custom_command(OUTPUT ${KERNEL_LIBRARY} COMMAND ${KERNEL_LINK} ${KERNEL_BITCODE} -o ${KERNEL_LIBRARY}
                     DEPENDS ${KERNEL_BITCODE} COMMENT "kernel library" VERBATIM)
endif()

# The bytes as an object, found by two symbols.
set(KERNEL_EMBED ${KERNEL_FOLDER}/embed.cpp)
file(WRITE ${KERNEL_EMBED}.new "__asm__(\".section .rodata\\n.balign 16\\n.globl aglow_kernel_library\\n.globl aglow_kernel_library_end\\n\"
        \"aglow_kernel_library:\\n.incbin \\\"${KERNEL_LIBRARY}\\\"\\naglow_kernel_library_end:\\n.byte 0\\n.text\\n\");\n")
file(COPY_FILE ${KERNEL_EMBED}.new ${KERNEL_EMBED} ONLY_IF_DIFFERENT)
set_source_files_properties(${KERNEL_EMBED} PROPERTIES OBJECT_DEPENDS ${KERNEL_LIBRARY} GENERATED TRUE)
target_sources(aglow_backends PRIVATE ${KERNEL_EMBED})

target_compile_definitions(aglow_library PUBLIC $<BUILD_INTERFACE:AGLOW_LLVM>)
target_include_directories(aglow_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIR})
target_link_libraries(aglow_library PRIVATE ${LLVM_LIBRARIES})
foreach(check ${LINK_CHECKS})
  target_link_libraries(${check} PRIVATE ${LLVM_LIBRARIES})
endforeach()

# Which compiler this is, for packages and for the cache of them.
file(GLOB_RECURSE CODE_SOURCES CONFIGURE_DEPENDS src/*.cpp src/*.h src/*.inc)
list(FILTER CODE_SOURCES EXCLUDE REGEX "/src/(page|media|import|dynamic|runtime|train|report|serve|python|cli|api)/")
set(CODE_HASH ${KERNEL_FOLDER}/code_hash.cpp)
add_custom_command(OUTPUT ${CODE_HASH}
                   COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DLIBRARY=${KERNEL_LIBRARY} -DOUT=${CODE_HASH}
                           -P ${CMAKE_SOURCE_DIR}/cmake/code_hash.cmake
                   DEPENDS ${CODE_SOURCES} ${KERNEL_LIBRARY} cmake/code_hash.cmake COMMENT "code hash" VERBATIM)
target_sources(aglow_backends PRIVATE ${CODE_HASH})
