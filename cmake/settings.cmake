# What every folder of src/ is compiled with.
add_library(aglow_settings INTERFACE)
target_include_directories(aglow_settings INTERFACE ${CMAKE_SOURCE_DIR}/src ${GENERATED} ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(aglow_settings INTERFACE AGLOW_VERSION="${PROJECT_VERSION}"
                           $<$<BOOL:${AGLOW_LLVM}>:AGLOW_LLVM>)
target_compile_options(aglow_settings INTERFACE ${AGLOW_WARNINGS})
target_link_libraries(aglow_settings INTERFACE fmt::fmt Threads::Threads)

# What nearly every file includes is read once, in a form that the compiler keeps. None of it is the project's own, so
# that editing a header rebuilds what uses it and no more.
set(COMMON_HEADERS <algorithm> <array> <atomic> <bit> <chrono> <cmath> <cstdint> <cstring> <deque> <functional> <limits>
                   <list> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view>
                   <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
# Equal headers give equal files, which ccache needs to know them again.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")

# use_settings(LIBRARY [BRIEF] [HEADERS...]). BRIEF is for code that runs for a moment and is much: to optimize it further
# takes longer than it ever saves, and under the sanitizers all the more. The first library of each kind reads the common
# headers for all others but those that give more.
function(use_settings library)
  cmake_parse_arguments(PARSE_ARGV 1 GIVEN "BRIEF" "" "")
  target_link_libraries(${library} PRIVATE aglow_settings)
  set(kind COMMON_HEADERS_FROM)
  if(GIVEN_BRIEF AND AGLOW_SANITIZE)
    target_compile_options(${library} PRIVATE -O0)
    set(kind UNOPTIMIZED_HEADERS_FROM)
  elseif(GIVEN_BRIEF AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${library} PRIVATE -O1)
  endif()
  get_property(reader GLOBAL PROPERTY ${kind})
  if(reader AND NOT GIVEN_UNPARSED_ARGUMENTS)
    target_precompile_headers(${library} REUSE_FROM ${reader})
    return()
  endif()
  target_precompile_headers(${library} PRIVATE ${COMMON_HEADERS} ${GIVEN_UNPARSED_ARGUMENTS})
  if(NOT reader AND NOT GIVEN_UNPARSED_ARGUMENTS)
    set_property(GLOBAL PROPERTY ${kind} ${library})
  endif()
endfunction()
