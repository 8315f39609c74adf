# Writes a source with the fingerprint of what predictions are computed by, run as a script:
#   cmake -D LIST=files.txt -D ROOT=/path/to/the/tree -D OUTPUT=source_fingerprint.cpp -P SourceFingerprint.cmake
# Names count from the root and bytes as they are, so that every build of the same sources has the same one.
file(STRINGS ${LIST} sources)
set(all "")
foreach(source ${sources})
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND all "${source} ${hash}\n")
endforeach()
string(SHA256 fingerprint "${all}")
string(SUBSTRING ${fingerprint} 0 16 fingerprint)
file(WRITE ${OUTPUT} "#include \"guard/models_version.h\"\n\n\
namespace forerun::guard {\nconst char* const kSourceFingerprint = \"${fingerprint}\";\n}\n")
