// The workspaces of convolutions, packed: what python -m forerun.workspace_fit wrote as text, by kind.
#include "base/data_dir.h"
#include "base/output_file.h"
#include "lab/cli/answer.h"
#include "lab/cli/calibrations/calibrations.h"
#include "memory/convolution_cases.h"

namespace forerun::cli {
namespace {

struct ConvolutionsCall {
  std::string text;
  std::string out;
};

Status pack(const ConvolutionsCall& call, std::string& said) {
  if (!std::filesystem::exists(call.text)) {
    return Error{"the file is not there", call.text, "write it: python -m forerun.workspace_fit --out FOLDER"};
  }
  const Result<ConvolutionFile> file = ConvolutionFile::load(call.text);
  if (!file) return file.error();
  const Result<std::string> bytes = file->packed();
  if (!bytes) return bytes.error();
  if (Status status = write_whole_file(call.out, *bytes); !status.ok()) return status;
  said = fmt::format("{}: {} convolutions in {} bytes", call.out, ConvolutionCases(*file).size(), bytes->size());
  return {};
}

int pack_convolutions(ConvolutionsCall call) {
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return fail(folder.error());
  if (call.text.empty()) call.text = (*folder / "memory" / "convolutions.tsv").string();
  if (call.out.empty()) call.out = (*folder / "memory" / "convolutions.bin").string();
  std::string said;
  if (const Status status = pack(call, said); !status.ok()) return fail(status.error());
  fmt::print("{}\n", said);
  return kDone;
}

Run add_convolutions_calibration(CLI::App& app) {
  auto call = std::make_shared<ConvolutionsCall>();
  app.add_option("--data", call->text,
                 "Lines that `python -m forerun.workspace_fit` wrote, in place of data/memory/convolutions.tsv");
  app.add_option("--out", call->out, "File for the packed ones, in place of data/memory/convolutions.bin");
  return [call] { return pack_convolutions(*call); };
}

}  // namespace

Calibration convolutions_calibration() {
  return {.name = "convolutions",
          .summary = "The workspaces of convolutions, packed by kind",
          .add = add_convolutions_calibration,
          .examples = {{"forerun calibrate convolutions --data convolutions.tsv", "what workspace_fit wrote"}}};
}

}  // namespace forerun::cli
