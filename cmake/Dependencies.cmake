# Finds the libraries of a build. A full build takes Debian's packages; FORERUN_TRAIN_ONLY takes fmt and nlohmann-json as
# headers alone (from FORERUN_HEADERS or the system), zlib and libzstd where they are, and none of the others.

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
  find_package(SQLite3 REQUIRED)  # stores
  find_path(FORERUN_MICROHTTPD_INCLUDE microhttpd.h)
  find_library(FORERUN_MICROHTTPD_LIBRARY microhttpd)
  mark_as_advanced(FORERUN_MICROHTTPD_INCLUDE FORERUN_MICROHTTPD_LIBRARY)
  if(NOT FORERUN_MICROHTTPD_INCLUDE OR NOT FORERUN_MICROHTTPD_LIBRARY)
    message(FATAL_ERROR "libmicrohttpd not found: install libmicrohttpd-dev")
  endif()
  add_library(Microhttpd::microhttpd UNKNOWN IMPORTED)
  set_target_properties(Microhttpd::microhttpd PROPERTIES IMPORTED_LOCATION ${FORERUN_MICROHTTPD_LIBRARY}
                                                          INTERFACE_INCLUDE_DIRECTORIES ${FORERUN_MICROHTTPD_INCLUDE})
  # By hand: CMake's own module wants the headers of the server too.
  find_path(FORERUN_LIBPQ_INCLUDE libpq-fe.h PATH_SUFFIXES postgresql)
  find_library(FORERUN_LIBPQ_LIBRARY pq)
  mark_as_advanced(FORERUN_LIBPQ_INCLUDE FORERUN_LIBPQ_LIBRARY)
  if(FORERUN_POSTGRESQL AND FORERUN_LIBPQ_INCLUDE AND FORERUN_LIBPQ_LIBRARY)
    add_library(PostgreSQL::libpq UNKNOWN IMPORTED)
    set_target_properties(PostgreSQL::libpq PROPERTIES IMPORTED_LOCATION ${FORERUN_LIBPQ_LIBRARY}
                                                       INTERFACE_INCLUDE_DIRECTORIES ${FORERUN_LIBPQ_INCLUDE})
    message(STATUS "Stores in PostgreSQL (libpq): ON")
  elseif(FORERUN_POSTGRESQL STREQUAL "ON")
    message(FATAL_ERROR "libpq not found: install libpq-dev, or set FORERUN_POSTGRESQL=OFF")
  else()
    message(STATUS "Stores in PostgreSQL (libpq): OFF; libpq-dev is not there, or was not asked for")
  endif()
  # toml++ reads price files. As headers alone: the program needs no library of it where it runs.
  find_path(FORERUN_TOML_INCLUDE toml++/toml.h)
  mark_as_advanced(FORERUN_TOML_INCLUDE)
  if(NOT FORERUN_TOML_INCLUDE)
    message(FATAL_ERROR "toml++ not found: install libtomlplusplus-dev")
  endif()
endif()

# libzstd's own CMake files are not in every distribution's package.
find_path(FORERUN_ZSTD_INCLUDE zstd.h)
find_library(FORERUN_ZSTD_LIBRARY zstd)
mark_as_advanced(FORERUN_ZSTD_INCLUDE FORERUN_ZSTD_LIBRARY)
if(FORERUN_ZSTD_INCLUDE AND FORERUN_ZSTD_LIBRARY)
  add_library(Zstd::zstd UNKNOWN IMPORTED)
  set_target_properties(Zstd::zstd PROPERTIES IMPORTED_LOCATION ${FORERUN_ZSTD_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${FORERUN_ZSTD_INCLUDE})
elseif(NOT FORERUN_TRAIN_ONLY)
  message(FATAL_ERROR "libzstd not found: install libzstd-dev")
endif()

if(FORERUN_TORCH STREQUAL "AUTO")
  find_package(LibTorch QUIET)
  set(FORERUN_TORCH ${LibTorch_FOUND})  # for this run of CMake; the cache keeps AUTO
elseif(FORERUN_TORCH)
  find_package(LibTorch REQUIRED)
endif()
message(STATUS "Learned predictors (LibTorch): ${FORERUN_TORCH}")

# XGBoost grows trees (`forerun train hybrid`); asking them needs no library. Its own CMake files want more than that.
if(NOT FORERUN_TRAIN_ONLY)
  find_path(FORERUN_XGBOOST_INCLUDE xgboost/c_api.h)
  find_library(FORERUN_XGBOOST_LIBRARY xgboost)
  mark_as_advanced(FORERUN_XGBOOST_INCLUDE FORERUN_XGBOOST_LIBRARY)
  if(FORERUN_XGBOOST_INCLUDE AND FORERUN_XGBOOST_LIBRARY)
    add_library(XGBoost::xgboost UNKNOWN IMPORTED)
    set_target_properties(XGBoost::xgboost PROPERTIES IMPORTED_LOCATION ${FORERUN_XGBOOST_LIBRARY}
                                                      INTERFACE_INCLUDE_DIRECTORIES ${FORERUN_XGBOOST_INCLUDE})
  endif()
endif()

