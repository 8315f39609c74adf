#include "device/catalogue.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "base/data_dir.h"
#include "base/json_file.h"
#include "base/nearest.h"
#include "device/link_sources.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using PlacesByName = std::map<std::string, size_t>;

// "NVIDIA A100-SXM4-80GB" -> "nvidiaa100sxm480gb"
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

// A name and its aliases, folded.
template <class Named>
std::vector<std::string> folded_names(const Named& item) {
  std::vector<std::string> names = {folded(item.name)};
  for (const std::string& alias : item.aliases) names.push_back(folded(alias));
  return names;
}

template <class Named>
Result<Named> find_among(const std::vector<Named>& items, const PlacesByName& places, std::string_view name,
                         const std::string& kind) {
  if (const auto found = places.find(folded(name)); found != places.end()) return items[found->second];
  std::vector<std::string> known;
  for (const Named& item : items) known.push_back(item.aliases.empty() ? item.name : item.aliases.front());
  std::string remedy = "known are: ";
  std::vector<std::string> listed = nearest(name, known, 3);
  if (!listed.empty())
    remedy = "nearest known: ";
  else
    listed = known;
  for (size_t i = 0; i < listed.size(); ++i) remedy += (i == 0 ? "" : ", ") + listed[i];
  return Error{"no " + kind + " is called \"" + std::string(name) + "\"", "", remedy};
}

template <class Named>
Status add_to(std::vector<Named>& items, PlacesByName& places, Named item, const std::string& kind) {
  const std::vector<std::string> own = folded_names(item);
  if (own.front().empty()) return Error{"a " + kind + " without a name", "", "give it a name"};
  // One of the same name is replaced; of all others neither name nor aliases may be used again.
  const auto known = places.find(own.front());
  const bool replaces = known != places.end() && folded(items[known->second].name) == own.front();
  const size_t place = replaces ? known->second : items.size();
  for (size_t i = 0; i < own.size(); ++i) {
    const auto taken = places.find(own[i]);
    if (taken == places.end() || taken->second == place) continue;
    const std::string& other = items[taken->second].name;
    if (i == 0)
      return Error{"\"" + item.name + "\" is already an alias of \"" + other + "\"", "", "choose another name"};
    return Error{"the alias \"" + item.aliases[i - 1] + "\" of \"" + item.name + "\" already names \"" + other + "\"",
                 "", "choose another alias"};
  }
  std::erase_if(places, [&](const auto& entry) { return entry.second == place; });
  for (const std::string& name : own) places.emplace(name, place);
  if (replaces)
    items[place] = std::move(item);
  else
    items.push_back(std::move(item));
  return {};
}

// Reads {value, source} pairs and holds every number to having a source.
class SourcedNumbers {
 public:
  SourcedNumbers(JsonObject& file, JsonObject& object) : object_(object) {
    JsonObject sources = file.object("sources");
    for (const std::string& key : sources.keys()) sources_.emplace(key, sources.text(key));
  }
  double number(const std::string& field, Sign sign = Sign::positive) {
    JsonObject entry = object_.object(field);
    const std::string source = entry.text("source");
    if (!source.empty() && !sources_.contains(source)) {
      entry.fail("source", "\"" + source + "\" is not among the file's sources", "add it to \"sources\"");
    }
    if (const auto known = sources_.find(source); known != sources_.end()) last_source_ = known->second;
    return entry.number("value", sign);
  }
  // Of the number that was read last.
  [[nodiscard]] const std::string& source() const { return last_source_; }
  double number_or_zero(const std::string& field) { return object_.has(field) ? number(field) : 0; }

 private:
  JsonObject& object_;
  std::map<std::string, std::string> sources_;  // by key: where the number stands
  std::string last_source_;
};

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMebi = 1024.0 * 1024.0;

// A generation of NVIDIA GPUs: what its boards have in common, for files that do not say it themselves.
struct Generation {
  std::string_view name;
  int least, most;  // compute capabilities of its boards
  int assumed;      // where the file gives none: that of its boards for training
  int linked_gpus;  // where the boards have a link: how many it joins at most
};
constexpr int kAllGpus = 0;
constexpr Generation kGenerations[] = {
    {"pascal", 60, 62, 60, kAllGpus},
    {"volta", 70, 72, 70, kAllGpus},
    {"turing", 75, 75, 75, 2},
    {"ampere", 80, 87, 80, kAllGpus},
    {"ampere-rtx", 86, 86, 86, 2},
    {"ada", 89, 89, 89, kAllGpus},
    {"hopper", 90, 90, 90, kAllGpus},
    {"blackwell", 100, 121, 100, kAllGpus},
    {"blackwell-rtx", 120, 121, 120, kAllGpus},
};

const Generation* generation_named(std::string_view name) {
  for (const Generation& generation : kGenerations) {
    if (generation.name == name) return &generation;
  }
  return nullptr;
}

std::string generation_of(int capability) {
  for (const Generation& generation : kGenerations) {
    if (generation.assumed == capability) return std::string(generation.name);
  }
  for (const Generation& generation : kGenerations) {
    if (generation.least <= capability && capability <= generation.most) return std::string(generation.name);
  }
  return {};
}

std::string generation_names() {
  std::string names;
  for (const Generation& generation : kGenerations) names += (names.empty() ? "" : ", ") + std::string(generation.name);
  return names;
}

// Architecture and compute capability: each follows from the other where the file gives one, and they must not
// contradict each other. A file with neither is of a GPU that is not NVIDIA's, or not known (capability 0).
void read_generation(JsonObject& file, SourcedNumbers& numbers, Device& device) {
  if (file.has("architecture")) device.architecture = file.text("architecture");
  const double given = numbers.number_or_zero("compute_capability");
  if (given >= 100) file.fail("compute_capability", "is no compute capability", "give it as CUDA does: 9.0");
  if (!file.status().ok()) return;
  device.compute_capability = static_cast<int>(std::lround(given * 10));
  const Generation* generation = generation_named(device.architecture);
  const int capability = device.compute_capability;
  if (capability == 0) {
    if (generation != nullptr) device.compute_capability = generation->assumed;
    if (generation == nullptr && !device.architecture.empty() && device.is_nvidia()) {
      file.fail("architecture", "no compute capability is known for \"" + device.architecture + "\"",
                "give compute_capability, or one of " + generation_names());
    }
  } else if (device.architecture.empty()) {
    device.architecture = generation_of(capability);
  } else if (generation != nullptr && (capability < generation->least || capability > generation->most)) {
    file.fail("compute_capability", device.capability_text() + " is none of the architecture " + device.architecture,
              "correct one of the two, or leave one out");
  }
}

Measured read_measured(JsonObject& file) {
  if (!file.has("measured")) return Measured::never;
  const std::string where = file.text("measured");
  for (const Measured known : {Measured::never, Measured::elsewhere, Measured::here}) {
    if (where == name_of(known)) return known;
  }
  file.fail("measured", "cannot be \"" + where + "\"", "known are here, elsewhere and never");
  return Measured::never;
}

// How many GPUs the link joins: the file's own number, else that of its generation's boards.
int read_linked_gpus(JsonObject& file, SourcedNumbers& numbers, const Device& device) {
  constexpr double kMostLinked = 1e6;
  if (file.has("link_gpus")) {
    const double given = numbers.number("link_gpus");
    if (device.link_bandwidth <= 0) file.fail("link_gpus", "the GPU has no link", "give link_gb_per_s too");
    if (given < 2 || given > kMostLinked)
      file.fail("link_gpus", "a link joins two GPUs or more", "give 2 for a bridge");
    return file.status().ok() ? static_cast<int>(given) : kAllGpus;
  }
  if (device.link_bandwidth <= 0) return kAllGpus;
  const Generation* generation = generation_named(device.architecture);
  return generation == nullptr ? kAllGpus : generation->linked_gpus;
}

// PyTorch 2.11 without CUBLAS_WORKSPACE_CONFIG: 32 MiB on Hopper and Blackwell, else two of 4 MiB and eight of 16 KiB.
Bytes default_blas_workspace(int capability) {
  return capability >= kHopper ? Bytes(int64_t{32} << 20) : Bytes((int64_t{8} << 20) + (int64_t{128} << 10));
}

// Ada, Hopper and Blackwell (compute capability 8.9 on) and AMD's CDNA 3: all their data sheets have twice the rate of bfloat16 for
// dense products in fp8 with float32 accumulation.
bool has_fp8_units(const Device& device) {
  constexpr int kAda = 89;
  return device.compute_capability >= kAda || device.architecture == "cdna3";
}

Device read_device(JsonObject& file) {
  Device device;
  device.name = file.text("name");
  device.aliases = file.texts("aliases");
  device.vendor = file.text("vendor");
  SourcedNumbers numbers(file, file);
  read_generation(file, numbers, device);
  device.measured = read_measured(file);
  device.power_w = numbers.number_or_zero("power_w");
  device.sm_count = static_cast<int64_t>(numbers.number("sm_count"));
  device.clock_mhz = numbers.number("clock_mhz");
  device.board_memory = Bytes(static_cast<int64_t>(numbers.number("memory_mib") * kMebi));
  const auto usable = Bytes(static_cast<int64_t>(numbers.number_or_zero("usable_mib") * kMebi));
  if (file.status().ok() && usable > device.board_memory) {
    file.fail("usable_mib", "a program cannot take more memory than the board has", "give at most memory_mib");
  }
  device.memory = usable.value > 0 ? usable : device.board_memory;
  const double workspace = numbers.number_or_zero("blas_workspace_kib");
  device.blas_workspace =
      workspace > 0 ? Bytes(static_cast<int64_t>(workspace * 1024)) : default_blas_workspace(device.compute_capability);
  device.memory_bandwidth = numbers.number("memory_gb_per_s") * kGiga;
  device.l2 = Bytes(static_cast<int64_t>(numbers.number("l2_mib") * kMebi));
  device.launch_gap = nanoseconds_from_us(numbers.number("launch_gap_us", Sign::not_negative));
  device.link_bandwidth = numbers.number_or_zero("link_gb_per_s") * kGiga;
  device.linked_gpus = read_linked_gpus(file, numbers, device);
  device.pcie_bandwidth = numbers.number("pcie_gb_per_s") * kGiga;
  device.peak.fp32 = numbers.number("fp32_tflops") * kTera;
  device.peak.fp64 = numbers.number("fp64_tflops") * kTera;
  device.peak.fp32_matrix = numbers.number_or_zero("fp32_matrix_tflops") * kTera;
  device.peak.fp16 = numbers.number_or_zero("fp16_tflops") * kTera;
  device.peak.tf32_tensor = numbers.number_or_zero("tf32_tensor_tflops") * kTera;
  device.peak.fp16_tensor = numbers.number_or_zero("fp16_tensor_tflops") * kTera;
  device.peak.bf16_tensor = numbers.number_or_zero("bf16_tensor_tflops") * kTera;
  device.peak.int8_tensor = numbers.number_or_zero("int8_tensor_tops") * kTera;
  device.peak.fp8_tensor = numbers.number_or_zero("fp8_tensor_tflops") * kTera;
  if (device.peak.fp8_tensor <= 0 && has_fp8_units(device)) device.peak.fp8_tensor = 2 * device.peak.bf16_tensor;
  return device;
}

// `sources`: may be null; else where their figures come from.
std::vector<Link> read_links(JsonObject& file, LinkSources* sources = nullptr) {
  std::vector<Link> links;
  for (JsonObject& entry : file.objects("links")) {
    Link link;
    link.name = entry.text("name");
    link.aliases = entry.texts("aliases");
    SourcedNumbers numbers(file, entry);
    FigureSources of;
    link.latency = nanoseconds_from_us(numbers.number("latency_us", Sign::not_negative));
    of.latency = numbers.source();
    link.bandwidth = numbers.number("gb_per_s") * kGiga;
    of.bandwidth = numbers.source();
    if (sources != nullptr) sources->insert_or_assign(link.name, std::move(of));
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace

Status DeviceCatalogue::add(Device device) { return add_to(devices_, device_places_, std::move(device), "GPU"); }

Status DeviceCatalogue::add(Link link) { return add_to(links_, link_places_, std::move(link), "link"); }

Status DeviceCatalogue::add_file(const fs::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (file->status().ok() && format != "device/1" && format != "links/1") {
    file->fail("format", "unknown format \"" + format + "\"", "known are device/1 and links/1");
  }
  if (format == "links/1") {
    std::vector<Link> links = read_links(*file);
    if (!file->status().ok()) return file->status();
    for (Link& link : links) {
      if (Status added = add(std::move(link)); !added.ok()) return added.error().within(path.string());
    }
    return {};
  }
  Device device = read_device(*file);
  if (!file->status().ok()) return file->status();
  device.file = path.string();
  if (Status added = add(std::move(device)); !added.ok()) return added.error().within(path.string());
  return {};
}

Result<Device> DeviceCatalogue::find(std::string_view name) const {
  return find_among(devices_, device_places_, name, "GPU");
}

Result<Link> DeviceCatalogue::find_link(std::string_view name) const {
  return find_among(links_, link_places_, name, "link");
}

namespace {

Result<std::vector<fs::path>> device_files(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  if (failed) return Error{"the folder cannot be read: " + failed.message(), folder.string(), "check its name"};
  if (files.empty()) return Error{"no device files (*.json) here", folder.string(), "check the data folder"};
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<DeviceCatalogue> load_devices(const fs::path& folder) {
  const Result<std::vector<fs::path>> files = device_files(folder);
  if (!files) return files.error();
  DeviceCatalogue catalogue;
  for (const fs::path& file : *files) {
    if (Status added = catalogue.add_file(file); !added.ok()) return added.error();
  }
  return catalogue;
}

Result<LinkSources> load_link_sources(const std::vector<std::string>& further) {
  const auto data = data_dir();
  if (!data) return data.error();
  Result<std::vector<fs::path>> files = device_files(*data / "devices");
  if (!files) return files.error();
  files->insert(files->end(), further.begin(), further.end());
  LinkSources sources;
  for (const fs::path& path : *files) {
    Result<JsonObject> file = JsonObject::read(path);
    if (!file) return file.error();
    if (file->text("format") != "links/1") continue;
    read_links(*file, &sources);
    if (!file->status().ok()) return file->status().error();
  }
  return sources;
}

}  // namespace forerun
