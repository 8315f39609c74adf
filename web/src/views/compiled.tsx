// The same model under torch.compile, beside the eager one.
import type {Compiled, CompiledKernel, FitVerdict, Prediction} from "../answers";
import {bytes, bytesRange, figure, hours, ms, msRange, plural, times, whole} from "../format";
import {Notes, Section} from "../ui/parts";
import {Table, type Column} from "../ui/table";

interface Row {
  what: string;
  eager: string;
  compiled: string;
  ratio: number | null;  // null: of no number
  range: string;
}

export const verdictText: Record<FitVerdict, string> = {fits: "fits", may_not_fit: "may not fit", does_not_fit: "does not fit"};

const kColumns: Column<Row>[] = [
  {title: "what", value: (row) => row.what, left: true},
  {title: "eager", value: (row) => row.eager},
  {title: "compiled", value: (row) => row.compiled},
  {title: "of it", value: (row) => row.ratio, show: (row) => row.ratio === null ? "" : times(row.ratio)},
  {title: "likely range", value: (row) => row.range},
];

const kKernelColumns: Column<CompiledKernel>[] = [
  {title: "kernel", value: (row) => row.kind, left: true},
  {title: "of", value: (row) => row.ops, left: true, wide: true},
  {title: "module", value: (row) => row.module, left: true, wide: true},
  {title: "number", value: (row) => row.count, show: (row) => whole(row.count)},
  {title: "time", value: (row) => row.gpu_ms, show: (row) => ms(row.gpu_ms)},
  {title: "bytes of one", value: (row) => row.bytes, show: (row) => bytes(row.bytes)},
];

function rowsOf(p: Prediction, c: Compiled): Row[] {
  return [
    {what: "iteration", eager: ms(p.iter_ms), compiled: ms(c.iter_ms), ratio: c.iter_ms / p.iter_ms, range: msRange(c.iter_low_ms, c.iter_high_ms)},
    {what: "GPU busy", eager: ms(p.gpu_ms), compiled: ms(c.gpu_ms), ratio: c.gpu_ms / p.gpu_ms, range: msRange(c.gpu_low_ms, c.gpu_high_ms)},
    {what: "kernels", eager: whole(c.eager_kernels), compiled: whole(c.kernels), ratio: c.kernels / c.eager_kernels, range: ""},
    {what: "peak allocated", eager: bytes(p.peak_allocated), compiled: bytes(c.peak_allocated), ratio: c.peak_allocated / p.peak_allocated,
      range: bytesRange(c.peak_allocated_low, c.peak_allocated_high)},
    {what: "in the GPU's memory", eager: verdictText[p.verdict], compiled: verdictText[c.verdict], ratio: null, range: ""},
    ...(p.job && c.job ? [{what: "whole run", eager: hours(p.job.hours), compiled: hours(c.job.hours), ratio: c.job.hours / p.job.hours,
      range: c.job.high_hours ? `${hours(c.job.low_hours ?? 0)} to ${hours(c.job.high_hours)}` : ""}] : []),
  ];
}

export function CompiledSection({p, c}: {p: Prediction; c: Compiled}) {
  const note = `${plural(c.pointwise + c.reductions + c.scatters, "generated kernel")} and ${plural(c.libraries, "call")} of libraries` +
    (c.compile_s === undefined ? "" : `; the first iteration compiles for about ${figure(c.compile_s)} s`);
  return (
    <Section title="Under torch.compile">
      <Table title="Eager and compiled" note={note} columns={kColumns} rows={rowsOf(p, c)} />
      <Table title="Largest generated kernels" columns={kKernelColumns} rows={c.largest_kernels} />
      {c.breaks.length > 0 && <Notes title={`Where the graph breaks (${plural(c.graphs, "graph")} compiled)`} notes={c.breaks.map((found) =>
        `${found.module || "outside of any module"}: ${found.why} (${found.where && `${found.where}, before `}${found.op})`)} />}
      <Notes title="Assumed of the compiled model" notes={c.assumptions} />
    </Section>
  );
}
