// The few structures and functions of nvml.h (NVIDIA Management Library API reference) that are used, declared by hand.
#include "monitor/nvml.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "monitor/clock.h"

namespace forerun::monitor {
namespace nvml {  // not anonymous: Gpu::Library has members of these types

using Device = void*;
using GpmSample = void*;
constexpr int kOk = 0;
constexpr int kNotEnoughSpace = 7;
constexpr int kGpuUtilisationSamples = 1, kMemoryUtilisationSamples = 2;
constexpr unsigned kGpmGraphicsUtil = 1, kGpmDramBandwidthUtil = 10;
constexpr size_t kGpmMetricsRoom = 512;  // the array of the newest headers is shorter; only num_metrics are touched

struct Utilization {
  unsigned gpu = 0, memory = 0;
};
union Value {
  double as_double;
  unsigned as_uint;
  unsigned long long as_ull;
};
struct Sample {
  unsigned long long microseconds = 0;  // of the wall clock
  Value value{};
};
struct GpmSupport {
  unsigned version = 1, supported = 0;
};
struct GpmMetric {
  unsigned id = 0;
  int status = 0;
  double value = 0;
  const char* names[3] = {nullptr, nullptr, nullptr};
};
struct GpmMetricsGet {
  unsigned version = 1, count = 0;
  GpmSample first = nullptr, second = nullptr;
  std::array<GpmMetric, kGpmMetricsRoom> metrics{};
};

}  // namespace nvml

std::string name(GpuSource source) {
  switch (source) {
    case GpuSource::kNone: return "none";
    case GpuSource::kRates: return "rates";
    case GpuSource::kSamples: return "samples";
    case GpuSource::kGpm: return "gpm";
  }
  return "";
}

struct Gpu::Library {
  void* handle = nullptr;
  nvml::Device device = nullptr;
  std::string model, driver;
  int (*shutdown)() = nullptr;
  int (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  int (*samples)(nvml::Device, int, unsigned long long, int*, unsigned*, nvml::Sample*) = nullptr;
  int (*gpm_sample)(nvml::Device, nvml::GpmSample) = nullptr;
  int (*gpm_metrics)(nvml::GpmMetricsGet*) = nullptr;
  int (*gpm_free)(nvml::GpmSample) = nullptr;
  bool gpm = false;
  nvml::GpmMetricsGet gpm_question;
  int64_t gpm_before_ns = 0;
  unsigned long long last_gpu_sample = 0, last_memory_sample = 0;

  template <class Function>
  bool find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(handle, symbol));
    return function != nullptr;
  }

  Status open(int index);
  void open_gpm();
  bool read_rates(std::vector<GpuReading>& readings);
  bool read_samples(std::vector<GpuReading>& readings);
  bool read_gpm(std::vector<GpuReading>& readings);
  bool sample_buffer(int kind, unsigned long long& last, std::map<unsigned long long, double>& points);

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (gpm_free != nullptr) {
      if (gpm_question.first != nullptr) gpm_free(gpm_question.first);
      if (gpm_question.second != nullptr) gpm_free(gpm_question.second);
    }
    if (shutdown != nullptr) shutdown();
    if (handle != nullptr) dlclose(handle);
  }
};

Status Gpu::Library::open(int index) {
  const Error no_driver{"no NVIDIA driver: libnvidia-ml.so.1 cannot be loaded", "", "only the network is monitored"};
  handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return no_driver;
  int (*init)() = nullptr;
  int (*by_index)(unsigned, nvml::Device*) = nullptr;
  int (*device_name)(nvml::Device, char*, unsigned) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  if (!find(init, "nvmlInit_v2") || !find(by_index, "nvmlDeviceGetHandleByIndex_v2") ||
      !find(utilization, "nvmlDeviceGetUtilizationRates")) {
    return Error{"the NVIDIA driver's library lacks a function that every version since 2013 has", "", ""};
  }
  if (const int code = init(); code != nvml::kOk) {
    return Error{"the NVIDIA driver does not answer (NVML code " + std::to_string(code) + ")", "", ""};
  }
  find(shutdown, "nvmlShutdown");
  if (const int code = by_index(static_cast<unsigned>(index), &device); code != nvml::kOk) {
    return Error{"no GPU " + std::to_string(index) + " (NVML code " + std::to_string(code) + ")", "", "--gpu N"};
  }
  std::array<char, 128> text{};
  if (find(device_name, "nvmlDeviceGetName") && device_name(device, text.data(), text.size()) == nvml::kOk) {
    model = text.data();
  }
  if (find(driver_version, "nvmlSystemGetDriverVersion") && driver_version(text.data(), text.size()) == nvml::kOk) {
    driver = text.data();
  }
  find(samples, "nvmlDeviceGetSamples");
  open_gpm();
  return {};
}

void Gpu::Library::open_gpm() {
  int (*support)(nvml::Device, nvml::GpmSupport*) = nullptr;
  int (*allocate)(nvml::GpmSample*) = nullptr;
  if (!find(support, "nvmlGpmQueryDeviceSupport") || !find(allocate, "nvmlGpmSampleAlloc") ||
      !find(gpm_free, "nvmlGpmSampleFree") || !find(gpm_sample, "nvmlGpmSampleGet") ||
      !find(gpm_metrics, "nvmlGpmMetricsGet")) {
    return;
  }
  nvml::GpmSupport answer;
  if (support(device, &answer) != nvml::kOk || answer.supported == 0) return;
  gpm = allocate(&gpm_question.first) == nvml::kOk && allocate(&gpm_question.second) == nvml::kOk &&
        gpm_sample(device, gpm_question.first) == nvml::kOk;
  gpm_before_ns = monotonic_ns();
}

bool Gpu::Library::read_rates(std::vector<GpuReading>& readings) {
  nvml::Utilization now;
  if (utilization(device, &now) != nvml::kOk) return false;
  readings.push_back({monotonic_ns(), static_cast<double>(now.gpu), static_cast<double>(now.memory)});
  return true;
}

bool Gpu::Library::sample_buffer(int kind, unsigned long long& last, std::map<unsigned long long, double>& points) {
  std::vector<nvml::Sample> buffer(256);
  int type = 0;
  unsigned count = static_cast<unsigned>(buffer.size());
  int code = samples(device, kind, last, &type, &count, buffer.data());
  if (code == nvml::kNotEnoughSpace) {
    buffer.resize(4096);
    count = static_cast<unsigned>(buffer.size());
    code = samples(device, kind, last, &type, &count, buffer.data());
  }
  if (code != nvml::kOk) return code == 6;  // not found: nothing new
  for (unsigned i = 0; i < std::min<size_t>(count, buffer.size()); ++i) {
    const nvml::Value& value = buffer[i].value;
    points[buffer[i].microseconds] = type == 0   ? value.as_double
                                     : type == 3 ? static_cast<double>(value.as_ull)
                                                 : static_cast<double>(value.as_uint);
    last = std::max(last, buffer[i].microseconds);
  }
  return true;
}

bool Gpu::Library::read_samples(std::vector<GpuReading>& readings) {
  if (samples == nullptr) return false;
  std::map<unsigned long long, double> gpu, memory;
  if (!sample_buffer(nvml::kGpuUtilisationSamples, last_gpu_sample, gpu)) return false;
  if (!sample_buffer(nvml::kMemoryUtilisationSamples, last_memory_sample, memory)) return false;
  const int64_t ahead = nanoseconds_of(CLOCK_REALTIME) - monotonic_ns();
  double level = 0;
  for (const auto& [microseconds, value] : gpu) {
    const auto same = memory.upper_bound(microseconds);
    if (same != memory.begin()) level = std::prev(same)->second;
    readings.push_back({static_cast<int64_t>(microseconds) * 1000 - ahead, value, level});
  }
  return true;
}

bool Gpu::Library::read_gpm(std::vector<GpuReading>& readings) {
  if (!gpm) return false;
  nvml::GpmMetricsGet& question = gpm_question;
  if (gpm_sample(device, question.second) != nvml::kOk) return false;
  const int64_t now = monotonic_ns();
  question.version = 1;
  question.count = 2;
  question.metrics[0] = nvml::GpmMetric{nvml::kGpmGraphicsUtil};
  question.metrics[1] = nvml::GpmMetric{nvml::kGpmDramBandwidthUtil};
  const int code = gpm_metrics(&question);
  std::swap(question.first, question.second);
  gpm_before_ns = now;
  if (code != nvml::kOk || question.metrics[0].status != nvml::kOk || question.metrics[1].status != nvml::kOk)
    return false;
  const double gpu = question.metrics[0].value, memory = question.metrics[1].value;
  if (std::isfinite(gpu) && std::isfinite(memory)) readings.push_back({now, gpu, memory});  // else: no new counters yet
  return true;
}

Gpu::Gpu(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Gpu::Gpu(Gpu&&) noexcept = default;
Gpu& Gpu::operator=(Gpu&&) noexcept = default;
Gpu::~Gpu() = default;

Result<Gpu> Gpu::open(int index) {
  auto library = std::make_unique<Library>();
  if (const Status opened = library->open(index); !opened) return opened.error();
  return Gpu(std::move(library));
}

const std::string& Gpu::model() const { return library_->model; }
const std::string& Gpu::driver() const { return library_->driver; }
bool Gpu::has_gpm() const { return library_->gpm; }

bool Gpu::read(GpuSource source, std::vector<GpuReading>& readings) {
  switch (source) {
    case GpuSource::kNone: return true;
    case GpuSource::kRates: return library_->read_rates(readings);
    case GpuSource::kSamples: return library_->read_samples(readings);
    case GpuSource::kGpm: return library_->read_gpm(readings);
  }
  return false;
}

GpuSource Gpu::best_source() {
  if (library_->gpm) {
    timespec wait{0, 20'000'000};  // the first pair of counters needs time between them
    nanosleep(&wait, nullptr);
  }
  std::vector<GpuReading> readings;
  for (const GpuSource source : {GpuSource::kGpm, GpuSource::kSamples, GpuSource::kRates}) {
    if (read(source, readings)) return source;
  }
  return GpuSource::kNone;
}

}  // namespace forerun::monitor
