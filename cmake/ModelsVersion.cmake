# What guard/models_version.h tells of the build: the version, and a fingerprint of the sources that predictions are made of.

set(sources "")
foreach(stage base device graph zoo ingest derive cost memory timeline predict)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src/${stage}/*.cpp
       ${CMAKE_SOURCE_DIR}/src/${stage}/*.h)
  list(FILTER found EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
  list(APPEND sources ${found})
endforeach()
string(REPLACE ";" "\n" lines "${sources}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/predicting_sources.txt CONTENT "${lines}\n")
set(fingerprint ${CMAKE_BINARY_DIR}/source_fingerprint.cpp)
list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/)
add_custom_command(
  OUTPUT ${fingerprint}
  COMMAND ${CMAKE_COMMAND} -D LIST=${CMAKE_BINARY_DIR}/predicting_sources.txt -D ROOT=${CMAKE_SOURCE_DIR}
          -D OUTPUT=${fingerprint} -P ${CMAKE_SOURCE_DIR}/cmake/SourceFingerprint.cmake
  DEPENDS ${sources} ${CMAKE_BINARY_DIR}/predicting_sources.txt ${CMAKE_SOURCE_DIR}/cmake/SourceFingerprint.cmake
  VERBATIM)
target_sources(forerun_guard PRIVATE ${fingerprint})
target_compile_definitions(forerun_guard PRIVATE FORERUN_VERSION="${PROJECT_VERSION}")
