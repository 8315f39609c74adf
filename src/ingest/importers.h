// The kinds of files that Forerun reads, in one list: how each is told by its content, and which verbs take it.
//
// A file's kind follows from its first 64 KiB, decompressed, and never from its name: `run.json.gz` may be a profiler
// trace or run records. Whoever is given a path asks once, hands the kind on, and answers a file of another kind with
// what it is and which verb takes it. A whole file may still be broken: that is for its reader to say. Formats of job
// tables have a list of their own (cluster/sources/sources.h), since they say too little about themselves to be told
// apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/json_outline.h"

namespace forerun {

enum class FileKind : uint8_t {
  onnx_model,
  records,           // run/1 to run/3, op/1 and env/1: files may mix them
  resource_records,  // resources/1
  profiler_trace,
  execution_trace,
  device,     // device/1 and links/1
  job_table,  // of some format of cluster/sources
  model_config,
  folder,
  stream,  // a pipe or the like, which can be read once and was not looked at
  empty,
  unknown,
};

// Whether a file is known to be of a kind that is in the list.
constexpr bool is_told(FileKind kind) { return kind < FileKind::folder; }

// What is looked at to tell the kind.
struct FileBeginning {
  std::string_view bytes;
  JsonOutline json;  // without fields where the bytes are no JSON
};

struct Importer {
  FileKind kind;
  const char* name;                     // "a profiler trace"
  std::vector<const char*> verbs;       // that take such a file; none: it cannot be read yet
  const char* otherwise;                // what to do in its place where no verb takes it
  std::vector<const char*> in_folders;  // endings of the names that count where a verb is given a folder
  bool (*sniff)(const FileBeginning& beginning);
};

// In the order in which they are asked: the first that recognises a file has it.
const std::vector<Importer>& importers();

// From the first bytes of a file, decompressed; they may be all of it, or cut anywhere.
FileKind sniff(std::string_view beginning);

// Of a path. A tar archive, compressed data that is broken from the start, a form that is not read (zip) and a path
// that is not there are Errors.
Result<FileKind> sniff_file(const std::string& path);

bool takes(std::string_view verb, FileKind kind);

// "is a profiler trace; forerun trace, replay and whatif take it; taken here: an ONNX model or a name from `forerun
// zoo`". `also`: what the verb takes beside files.
Error refused_file(FileKind kind, const std::string& path, std::string_view verb, std::string_view also = {});

// The kind of a file that the verb can go on with: one that it takes, or one that cannot be told (folder, stream,
// empty, unknown), of which its reader says more. An Error for every other.
Result<FileKind> file_for(std::string_view verb, const std::string& path);

// The files in and below a folder whose names are usual for the kind, in order of name. An Error where there are none.
Result<std::vector<std::string>> files_below(const std::string& folder, FileKind kind);

}  // namespace forerun
