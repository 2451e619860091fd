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

# use_settings(LIBRARY [HEADERS...]). The first library reads the common headers for all others but those that give more.
function(use_settings library)
  target_link_libraries(${library} PRIVATE aglow_settings)
  get_property(reader GLOBAL PROPERTY COMMON_HEADERS_FROM)
  if(reader AND NOT ARGN)
    target_precompile_headers(${library} REUSE_FROM ${reader})
    return()
  endif()
  target_precompile_headers(${library} PRIVATE ${COMMON_HEADERS} ${ARGN})
  if(NOT reader)
    set_property(GLOBAL PROPERTY COMMON_HEADERS_FROM ${library})
  endif()
endfunction()
