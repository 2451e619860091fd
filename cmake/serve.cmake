# The server: a program of its own beside the others, because HTTP, gRPC and protobuf stay out of them. It is built where
# its libraries are.
option(AGLOW_SERVE "Build the server, where its libraries are found" ON)
find_package(Boost 1.74 QUIET)
find_package(OpenSSL QUIET)
find_package(Protobuf QUIET)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(SIMDJSON QUIET IMPORTED_TARGET simdjson)
  pkg_check_modules(GRPC QUIET IMPORTED_TARGET grpc++)
endif()
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
foreach(need Boost_FOUND OPENSSL_FOUND Protobuf_FOUND SIMDJSON_FOUND GRPC_FOUND GRPC_CPP_PLUGIN)
  if(NOT ${need})
    list(APPEND SERVE_MISSING ${need})
  endif()
endforeach()
if(NOT AGLOW_SERVE)
  return()
endif()
if(SERVE_MISSING)
  message(STATUS "Without the server: ${SERVE_MISSING} (tools/dev_install.sh lists its packages)")
  return()
endif()

# What is served, without protocols: tests and fuzzers have it too.
file(GLOB SERVE_SOURCES CONFIGURE_DEPENDS src/serve/*.cpp)
add_library(aglow_serve OBJECT ${SERVE_SOURCES})
target_link_libraries(aglow_serve PRIVATE aglow_settings PUBLIC PkgConfig::SIMDJSON)
target_precompile_headers(aglow_serve PRIVATE ${COMMON_HEADERS})
add_dependencies(aglow_serve generated)

# The messages of gRPC. What is generated is not ours to warn about.
set(PROTO ${CMAKE_SOURCE_DIR}/src/serve/grpc/inference.proto)
set(PROTO_FOLDER ${CMAKE_BINARY_DIR}/serve)
file(MAKE_DIRECTORY ${PROTO_FOLDER})
add_custom_command(OUTPUT ${PROTO_FOLDER}/inference.pb.cc ${PROTO_FOLDER}/inference.pb.h ${PROTO_FOLDER}/inference.grpc.pb.cc
                          ${PROTO_FOLDER}/inference.grpc.pb.h
                   COMMAND protobuf::protoc --proto_path ${CMAKE_SOURCE_DIR}/src/serve/grpc --cpp_out ${PROTO_FOLDER}
                           --grpc_out ${PROTO_FOLDER} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${PROTO}
                   DEPENDS ${PROTO} COMMENT "protoc: messages of the server")
add_library(aglow_serve_messages OBJECT ${PROTO_FOLDER}/inference.pb.cc src/serve/grpc/messages.cpp)
target_link_libraries(aglow_serve_messages PRIVATE aglow_settings PUBLIC protobuf::libprotobuf)
target_include_directories(aglow_serve_messages SYSTEM PUBLIC ${PROTO_FOLDER})
set_source_files_properties(${PROTO_FOLDER}/inference.pb.cc ${PROTO_FOLDER}/inference.grpc.pb.cc PROPERTIES
                            COMPILE_OPTIONS "-w;$<IF:$<BOOL:${AGLOW_SANITIZE}>,-O0,-O1>")
add_dependencies(aglow_serve_messages generated)
if(AGLOW_SANITIZE)
  target_compile_options(aglow_serve PRIVATE -O0)
  target_compile_options(aglow_serve_messages PRIVATE -O0)
endif()
if(AGLOW_FUZZERS)
  target_compile_options(aglow_serve PRIVATE ${FUZZED_OPTIONS})
  target_compile_options(aglow_serve_messages PRIVATE ${FUZZED_OPTIONS})
endif()

add_executable(aglow-serve src/serve/program/main.cpp src/serve/program/options.cpp src/serve/http/server.cpp src/serve/grpc/server.cpp
               ${PROTO_FOLDER}/inference.grpc.pb.cc $<TARGET_OBJECTS:aglow_serve> $<TARGET_OBJECTS:aglow_serve_messages>
               $<TARGET_OBJECTS:aglow_cli>)
target_compile_options(aglow-serve PRIVATE ${AGLOW_WARNINGS} $<IF:$<BOOL:${AGLOW_SANITIZE}>,-O0,$<$<CONFIG:Release>:-O2>>)
target_link_libraries(aglow-serve PRIVATE aglow_library PkgConfig::SIMDJSON Boost::headers OpenSSL::SSL protobuf::libprotobuf
                      PkgConfig::GRPC)
target_include_directories(aglow-serve SYSTEM PRIVATE ${PROTO_FOLDER})
if(TARGET aglow_module)
  load_llvm_when_needed(aglow-serve)
endif()
list(APPEND LINKED_FILES boost/beast.hpp)
foreach(file ${GRPC_LINK_LIBRARIES} ${Protobuf_LIBRARIES} ${OPENSSL_LIBRARIES})
  if(file MATCHES "[.]a$" AND NOT file MATCHES "/librt[.]a$")  # with AGLOW_STATIC; that one is empty
    list(APPEND LINKED_FILES ${file})
  endif()
endforeach()
