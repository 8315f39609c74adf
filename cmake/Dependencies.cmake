# Finds the libraries of a build. A full build takes Debian's packages; FORERUN_TRAIN_ONLY takes fmt and nlohmann-json as
# headers alone (from FORERUN_HEADERS or the system), zlib where it is, and none of the others.

if(FORERUN_TRAIN_ONLY)
  find_path(FORERUN_FMT_INCLUDE fmt/format.h HINTS ${FORERUN_HEADERS} REQUIRED)
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_include_directories(fmt::fmt INTERFACE ${FORERUN_FMT_INCLUDE})
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)

  find_path(FORERUN_JSON_INCLUDE nlohmann/json.hpp HINTS ${FORERUN_HEADERS} REQUIRED)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
  target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${FORERUN_JSON_INCLUDE})
  find_package(ZLIB QUIET)
else()
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(ZLIB REQUIRED)
  find_package(simdjson REQUIRED)
  find_package(Protobuf REQUIRED)
  find_package(ONNX REQUIRED CONFIG)
endif()

if(FORERUN_TORCH)
  find_package(LibTorch REQUIRED)
endif()
