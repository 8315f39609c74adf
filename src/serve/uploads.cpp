#include "serve/uploads.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

namespace forerun::serve {
namespace fs = std::filesystem;

Result<std::unique_ptr<Uploads>> Uploads::open(const std::string& folder, Limits limits) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) fs::permissions(folder, fs::perms::owner_all, error);
  if (error)
    return Error{"the folder of uploads cannot be made: " + error.message(), folder,
                 "name a store in a folder that you may write to: --store FILE"};
  int64_t held = 0;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (store::is_hex(entry.path().filename().string(), 64)) {
      held += static_cast<int64_t>(entry.file_size(error));
    } else if (entry.path().filename().string().starts_with("incoming-")) {
      fs::remove(entry.path(), error);  // of a server that was killed
    }
  }
  return std::make_unique<Uploads>(fs::canonical(folder, error).string(), limits, held);
}

Result<std::unique_ptr<IncomingUpload>> Uploads::begin() {
  const std::string path = folder_ + "/incoming-" + store::random_hex(8);
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  return std::make_unique<IncomingUpload>(*this, path, std::move(*file));
}

bool Uploads::has(const std::string& id) const {
  std::error_code error;
  return store::is_hex(id, 64) && fs::is_regular_file(path(id), error);
}

bool Uploads::remove(const std::string& id) {
  if (!has(id)) return false;
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path(id), error));
  if (!fs::remove(path(id), error)) return false;
  held_ -= bytes;
  return true;
}

IncomingUpload::IncomingUpload(Uploads& uploads, std::string path, OutputFile file)
    : uploads_(uploads), path_(std::move(path)), file_(std::move(file)) {}

IncomingUpload::~IncomingUpload() {
  if (!kept_) uploads_.held_ -= bytes_;
}

Status IncomingUpload::write(std::string_view bytes) {
  const auto more = static_cast<int64_t>(bytes.size());
  if (bytes_ + more > uploads_.limits_.one) {
    return Error{fmt::format("is larger than {} bytes", uploads_.limits_.one), "upload",
                 "pack it with gzip or zstd, or use the command line"};
  }
  bytes_ += more;
  if ((uploads_.held_ += more) > uploads_.limits_.all) {
    return Error{fmt::format("all uploads together may have {} bytes", uploads_.limits_.all), "upload",
                 "DELETE /api/v1/uploads/{id} makes room"};
  }
  hash_.add(bytes);
  return file_.write(bytes);
}

Result<IncomingUpload::Finished> IncomingUpload::finish() {
  if (bytes_ == 0) return Error{"is empty", "upload", "send the file as the body"};
  if (const Status status = file_.finish(); !status.ok()) return status.error();
  const std::string id = hex_of(hash_.finish());
  std::error_code error;
  if (uploads_.has(id)) {
    fs::remove(path_, error);
    return Finished{id, bytes_};
  }
  fs::rename(path_, uploads_.path(id), error);
  if (error) {
    std::error_code ignored;
    fs::remove(path_, ignored);
    return Error{"cannot be kept: " + error.message(), "upload", ""};
  }
  kept_ = true;
  return Finished{id, bytes_};
}

std::string shown_name(std::string_view name) {
  constexpr size_t kMost = 100;
  name.remove_prefix(std::min(name.find_last_of("/\\") + 1, name.size()));
  std::string shown;
  for (const char c : name.substr(0, kMost)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                       c == '-' || c == '_' || c == '+' || c == ' ' || c == '(' || c == ')';
    shown += plain ? c : '_';
  }
  return shown.empty() ? "upload" : shown;
}

}  // namespace forerun::serve
