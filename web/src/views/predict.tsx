// A forecast: how long an iteration takes, whether it fits, and where time and memory go.
import type {CostShare, FitVerdict, Job, LiveShare, Prediction, Series} from "../answers";
import {bytes, bytesRange, figure, hours, ms, msRange, named, percent, plural, short, whole} from "../format";
import {Bars} from "../ui/bars";
import {Facts, Notes, Section, Stack, Verdict, Warnings, type Share, type Tone} from "../ui/parts";
import {Table, type Column} from "../ui/table";
import {CompiledSection, verdictText} from "./compiled";
import {kKinds, MemoryChart} from "./memory_chart";
import {OpViews} from "./ops";

export const verdictTone = (verdict: FitVerdict): Tone => verdict === "fits" ? "good" : verdict === "may_not_fit" ? "warn" : "bad";
export {verdictText};

const kBound: Record<string, string> = {
  compute: "Arithmetic on the GPU limits it.", memory: "The bandwidth of the GPU's memory limits it.",
  host: "The host limits it: the GPU waits for launches.",
};

export const rate = (p: Prediction): string =>
  p.tokens_per_second ? `${figure(p.tokens_per_second)} tokens/s` : `${figure(p.samples_per_second)} samples/s`;

const needed = (p: Prediction): number => p.peak_reserved + p.context;

function memoryBelow(p: Prediction): string {
  const whole = bytes(p.device_memory);
  const range = p.memory_ranges?.driver;
  if (p.memory_at_least) return `It takes at least ${bytes(needed(p))}; the GPU has ${whole}.`;
  const spread = range && range.high > range.low ? ` (${bytesRange(range.low, range.high)} in 8 of 10 such runs)` : "";
  return `It takes ${bytes(needed(p))} of the GPU's ${whole}${spread}.`;
}

export function PredictVerdict({p}: {p: Prediction}) {
  const spread = p.iter_high_ms > p.iter_low_ms ? `${msRange(p.iter_low_ms, p.iter_high_ms)} in 8 of 10 such runs. ` : "";
  const c = p.compiled;  // what was asked for: its verdict is that of the run
  return (
    <Verdict tone={verdictTone((c ?? p).verdict)} below={<>{spread}{kBound[p.bound] ?? ""} {memoryBelow(p)}</>}>
      {p.id} takes {ms(p.iter_ms)} an iteration on {named(p.gpu)}, and {c ? verdictText[p.verdict] : <em>{verdictText[p.verdict]}</em>}
      {c && <>; compiled it takes {ms(c.iter_ms)}, and <em>{verdictText[c.verdict]}</em></>}.
    </Verdict>
  );
}

function jobFacts(job: Job) {
  return [
    {name: "Whole run", value: hours(job.hours), more: job.high_hours ? `${hours(job.low_hours ?? 0)} to ${hours(job.high_hours)}, ${short(job.iterations)} iterations` : undefined},
    job.energy_kwh !== undefined && {name: "Energy", value: `${figure(job.energy_kwh)} kWh`},
    job.cost !== undefined && {name: "Cost, by your prices", value: figure(job.cost), more: job.high_cost ? `${figure(job.low_cost ?? 0)} to ${figure(job.high_cost)}` : undefined},
  ];
}

export function PredictFacts({p}: {p: Prediction}) {
  return (
    <Facts facts={[
      {name: "Iteration", value: ms(p.iter_ms), more: msRange(p.iter_low_ms, p.iter_high_ms)},
      {name: "Throughput", value: rate(p), more: p.tokens_per_second ? `${figure(p.samples_per_second)} samples/s` : undefined},
      p.compiled && {name: "Under torch.compile", value: ms(p.compiled.iter_ms), more: `${msRange(p.compiled.iter_low_ms, p.compiled.iter_high_ms)}, ${p.compiled.mode}`},
      {name: "GPU busy", value: ms(p.gpu_ms), more: `${percent(p.gpu_ms / p.iter_ms)} of the iteration`},
      {name: "Host busy", value: ms(p.host_ms), more: plural(p.kernels, "kernel")},
      {name: "Memory, with context", value: bytes(needed(p)), more: `${percent(needed(p) / p.device_memory)} of ${bytes(p.device_memory)}`},
      {name: "Batch", value: whole(p.batch), more: `${p.precision}, ${p.optimizer}`},
      {name: "Parameters", value: short(p.params), more: plural(p.ops, "op")},
      {name: "Like it was measured", value: percent(p.measured_share), more: "of the GPU's time"},
      ...(p.job ? jobFacts(p.job) : []),
    ]} />
  );
}

const kPartColours: Record<string, string> = {
  computation: "k1", memory_access: "k2", latency: "k6", idle: "faint", communication: "k4", bubble: "k5",
};

export const partShares = (parts: Record<string, number>): Share[] =>
  Object.entries(parts).map(([name, value]) => ({name: name.replace(/_/g, " "), value, colour: kPartColours[name] ?? "k8"}));

export function memoryShares(memory: Record<string, number>): Share[] {
  const colours = new Map([...kKinds, ["gathered", "k7"], ["gradient_buckets", "k7"], ["fragmentation", "faint"], ["context", "soft"]] as [string, string][]);
  return Object.entries(memory).filter(([name]) => name !== "total")
    .map(([name, value]) => ({name: name === "context" ? "CUDA context" : name.replace(/_/g, " "), value, colour: colours.get(name) ?? "k8"}));
}

const kCostColumns: Column<CostShare>[] = [
  {title: "name", value: (row) => row.name, left: true, wide: true},
  {title: "phase", value: (row) => row.phase ?? "", left: true},
  {title: "time", value: (row) => row.gpu_ms, show: (row) => ms(row.gpu_ms)},
  {title: "share", value: (row) => row.share, show: (row) => percent(row.share)},
  {title: "ops", value: (row) => row.ops, show: (row) => whole(row.ops)},
  {title: "limited by", value: (row) => row.bound, left: true},
  {title: "largest", value: (row) => row.largest ?? "", left: true, wide: true},
];

const kLiveColumns: Column<LiveShare>[] = [
  {title: "module", value: (row) => row.module || "(outside any module)", left: true, wide: true},
  {title: "kind", value: (row) => row.kind, left: true},
  {title: "size", value: (row) => row.bytes, show: (row) => bytes(row.bytes)},
  {title: "blocks", value: (row) => row.blocks, show: (row) => whole(row.blocks)},
  {title: "largest", value: (row) => row.largest, show: (row) => bytes(row.largest)},
  {title: "of", value: (row) => row.largest_of, left: true, wide: true},
];

export function CostBars({title, shares}: {title: string; shares: CostShare[]}) {
  return (
    <Bars title={title} unit="ms" bars={shares.map((row) => ({
      name: (row.name || "(outside any module)").replace(/^aten\./, "").replace(/\.default$/, "") + (row.phase === "backward" ? " \u2190" : ""), value: row.gpu_ms,
      text: `${ms(row.gpu_ms)}, ${percent(row.share)}`, hint: `${row.name}: ${plural(row.ops, "op")}, ${ms(row.gpu_ms)}, limited by ${row.bound}`,
    }))} />
  );
}

export function MemoryParts({p}: {p: Prediction}) {
  return <Stack label="Memory at the peak" shares={memoryShares(p.memory)} whole={p.device_memory} />;
}

function peakNote(p: Prediction): string {
  const peak = p.memory_peak;
  if (!peak || !peak.op) return "";
  return `Peak in iteration ${peak.iteration}, ${peak.phase}: ${peak.op}${peak.module ? ` in ${peak.module}` : ""}`;
}

export function LiveTable({p}: {p: Prediction}) {
  if (!p.memory_peak || p.memory_peak.live.length === 0) return null;
  return <Table title="What lives at the peak" note={peakNote(p)} columns={kLiveColumns} rows={p.memory_peak.live} />;
}

export function PredictBody({p, series}: {p: Prediction; series: Series}) {
  const odd = [...Object.entries(p.unknown_ops).map(([name, count]) => `${name} (${count}) has no rule; its time is that of its bytes`),
    ...Object.entries(p.out_of_distribution_ops).map(([name, count]) => `${name} (${count}) lies outside what was measured`)];
  return (
    <>
      {p.compiled && <CompiledSection p={p} c={p.compiled} />}
      <Section title={p.compiled ? "Where the time goes, eager" : "Where the time goes"}>
        <Stack label="Parts of the iteration" text={ms} whole={p.iter_ms} shares={p.parts_ms ? partShares(p.parts_ms) : [
          {name: "forward", value: p.phases.forward_ms, colour: "k1"}, {name: "backward", value: p.phases.backward_ms, colour: "k2"},
          {name: "update", value: p.phases.update_ms, colour: "k5"}]} />
        <div class="pair">
          {p.costliest_ops && <CostBars title="Costliest ops" shares={p.costliest_ops} />}
          {p.costliest_modules && <CostBars title="Costliest modules" shares={p.costliest_modules} />}
        </div>
        {series.ops ? <OpViews ops={series.ops} /> : p.costliest_ops && <Table title="Costliest ops in detail" columns={kCostColumns} rows={p.costliest_ops} />}
      </Section>
      <Section title={p.compiled ? "Memory, eager" : "Memory"}>
        <MemoryParts p={p} />
        {series.memory && <MemoryChart series={series.memory} />}
        <LiveTable p={p} />
      </Section>
      {p.host_remedies && p.host_remedies.length > 0 && (
        <Section title="What would take the host's bound away">
          <Bars title="Iteration with each change" unit="ms" bars={[
            {name: "as asked", value: p.iter_ms, text: ms(p.iter_ms), tone: "faint"},
            ...p.host_remedies.map((remedy) => ({name: remedy.what, value: remedy.iter_ms, text: `${ms(remedy.iter_ms)}, ${figure(remedy.samples_per_second)} samples/s`}))]} />
        </Section>
      )}
      {p.with && <Section title="What learned predictors say"><Table title="Predictors" rows={p.with} columns={[
        {title: "predictor", value: (row) => row.predictor, left: true},
        {title: "iteration", value: (row) => row.iter_ms ?? null, show: (row) => row.iter_ms === undefined ? "" : ms(row.iter_ms)},
        {title: "GPU busy", value: (row) => row.gpu_ms ?? null, show: (row) => row.gpu_ms === undefined ? "" : ms(row.gpu_ms)},
        {title: "memory", value: (row) => row.peak_allocated ?? null, show: (row) => row.peak_allocated === undefined ? "" : bytes(row.peak_allocated)},
        {title: "trained on", value: (row) => row.trained_on.join(", "), left: true, wide: true},
      ]} /></Section>}
      <Notes title="Ops without evidence" notes={odd} />
      <Notes title="Assumptions" notes={p.assumptions ?? []} />
    </>
  );
}

function ManyPredictions({all}: {all: Prediction[]}) {
  const fit = all.filter((p) => p.verdict === "fits").length;
  return (
    <>
      <Verdict>{plural(all.length, "run")}: {fit === all.length ? "all fit" : `${whole(fit)} surely fit`}.</Verdict>
      <Section title="Runs"><Table title="As recorded" rows={all} first={40} columns={kPredictionColumns} /></Section>
    </>
  );
}

export const kPredictionColumns: Column<Prediction>[] = [
  {title: "run", value: (p) => p.id, left: true, wide: true},
  {title: "GPU", value: (p) => p.gpu, left: true},
  {title: "batch", value: (p) => p.batch, show: (p) => whole(p.batch)},
  {title: "iteration", value: (p) => p.iter_ms, show: (p) => ms(p.iter_ms)},
  {title: "range", value: (p) => p.iter_high_ms, show: (p) => msRange(p.iter_low_ms, p.iter_high_ms)},
  {title: "throughput", value: (p) => p.samples_per_second, show: rate},
  {title: "limited by", value: (p) => p.bound, left: true},
  {title: "memory", value: needed, show: (p) => bytes(needed(p))},
  {title: "verdict", value: (p) => p.verdict, show: (p) => <span class={`tag ${verdictTone(p.verdict)}`}>{verdictText[p.verdict]}</span>, left: true},
];

export function PredictView({answers, series}: {answers: Prediction[]; series: Series}) {
  const p = answers[0];
  if (!p) return <Verdict>No run was predicted.</Verdict>;
  if (answers.length > 1) return <ManyPredictions all={answers} />;
  return (
    <>
      <Warnings warnings={p.warnings} />
      <PredictVerdict p={p} />
      <PredictFacts p={p} />
      <PredictBody p={p} series={series} />
    </>
  );
}
