// Training on many GPUs: the scaling curve, what a step is spent on, and the plans that were tried.
import {useMemo} from "preact/hooks";
import type {Job} from "../answers";
import {bytes, figure, hours, ms, msRange, percent, plural, short, times, whole} from "../format";
import {Bars, type Bar} from "../ui/bars";
import {colour, useScheme} from "../ui/figure";
import {Facts, Notes, Section, Stack, Verdict} from "../ui/parts";
import {Plot, type Line} from "../ui/plot";
import {Table, type Column} from "../ui/table";
import {memoryShares, partShares} from "./predict";

interface Plan {
  tensor: number; sequence_parallel: boolean; context: number; data: number; experts: number; pipeline: number; zero_bubble: boolean; chunks: number;
  micro_batch: number; micro_batches: number; zero: number; shard: number; reshard: boolean; checkpoint: boolean; selective: boolean; overlap: boolean;
  exchange: string; servers: number;
}

interface Step {
  gpus: number;
  plan: Plan;
  global_batch: number;
  step_ms: number;
  step_low_ms: number;
  step_high_ms: number;
  samples_per_second: number;
  tokens_per_second: number;
  scaling_efficiency: number;
  model_flops_share: number;
  exchange_ms: number;
  exposed_ms: number;
  fits: boolean;
  unvalidated: string[];
  parts_ms: Record<string, number>;
  memory: Record<string, number>;
  job?: Job;
}

export interface Scale {
  schema: string;
  model: string;
  parameters: number;
  gpu: string;
  node: number;
  within: string;
  between: string;
  precision: string;
  considered?: number;
  feasible?: number;
  too_large?: number;
  plans?: Step[];
  steps?: Step[];
  assumptions: string[];
  kinds?: {gpu: string; gpus: number; network: string; batch: number; own_step_ms: number; waits_ms: number; fits: boolean}[];
}

export function planText(plan: Plan): string {
  const parts = [];
  if (plan.tensor > 1) parts.push(`tp ${plan.tensor}${plan.sequence_parallel ? " sp" : ""}`);
  if (plan.context > 1) parts.push(`cp ${plan.context}`);
  if (plan.pipeline > 1) parts.push(`pp ${plan.pipeline}${plan.chunks > 1 ? ` x ${plan.chunks} chunks` : ""}${plan.zero_bubble ? ", zero bubble" : ""}`);
  if (plan.data > 1 || parts.length === 0) parts.push(`dp ${plan.data}`);
  if (plan.experts > 1) parts.push(`ep ${plan.experts}`);
  if (plan.zero > 0) parts.push(`ZeRO ${plan.zero}`);
  if (plan.shard > 0 && plan.shard < plan.data * plan.context) parts.push(`shards of ${plan.shard}`);
  if (plan.zero === 3 && !plan.reshard) parts.push("not resharded");
  if (plan.checkpoint || plan.selective) parts.push(plan.selective ? "selective checkpointing" : "checkpointing");
  if (plan.servers > 0) parts.push(`${plan.servers} servers`);
  return `${parts.join(", ")}, micro-batch ${plan.micro_batch}`;
}

const rateOf = (step: Step): string => step.tokens_per_second > 0 ? `${short(step.tokens_per_second)} tokens/s` : `${figure(step.samples_per_second)} samples/s`;

const kColumns: Column<Step>[] = [
  {title: "GPUs", value: (step) => step.gpus, show: (step) => whole(step.gpus)},
  {title: "plan", value: (step) => planText(step.plan), left: true, wide: true},
  {title: "batch", value: (step) => step.global_batch, show: (step) => whole(step.global_batch)},
  {title: "step", value: (step) => step.step_ms, show: (step) => ms(step.step_ms)},
  {title: "range", value: (step) => step.step_high_ms, show: (step) => msRange(step.step_low_ms, step.step_high_ms)},
  {title: "throughput", value: (step) => step.samples_per_second, show: rateOf},
  {title: "scaling", value: (step) => step.scaling_efficiency, show: (step) => percent(step.scaling_efficiency)},
  {title: "of peak", value: (step) => step.model_flops_share, show: (step) => percent(step.model_flops_share)},
  {title: "exchange shown", value: (step) => step.exposed_ms, show: (step) => `${ms(step.exposed_ms)} of ${ms(step.exchange_ms)}`},
  {title: "memory", value: (step) => step.memory.total ?? 0, show: (step) => bytes(step.memory.total ?? 0)},
  {title: "verdict", value: (step) => step.fits ? "fits" : "does not fit", left: true, show: (step) => <span class={`tag ${step.fits ? "good" : "bad"}`}>{step.fits ? "fits" : "does not fit"}</span>},
];
const kValidated: Column<Step> = {title: "never validated", value: (step) => step.unvalidated.join("; "), left: true, wide: true};

const columnsOf = (steps: Step[]): Column<Step>[] => steps.some((step) => step.unvalidated.length > 0) ? [...kColumns, kValidated] : kColumns;
const withJob = (steps: Step[]): Column<Step>[] => steps.some((step) => step.job) ? [
  ...columnsOf(steps), {title: "whole run", value: (step) => step.job?.hours, show: (step) => step.job ? hours(step.job.hours) : ""},
  ...(steps.some((step) => step.job?.cost !== undefined) ? [{title: "cost", value: (step: Step) => step.job?.cost, show: (step: Step) => step.job?.cost === undefined ? "" : figure(step.job.cost)}] : []),
] : columnsOf(steps);

function ScalingCurve({steps}: {steps: Step[]}) {
  const sorted = useMemo(() => steps.slice().sort((a, b) => a.gpus - b.gpus), [steps]);
  const x = useMemo(() => sorted.map((step) => step.gpus), [sorted]);
  const first = sorted[0];
  const tokens = sorted.every((step) => step.tokens_per_second > 0);
  const rate = (step: Step) => tokens ? step.tokens_per_second : step.samples_per_second;
  const lines = useMemo<Line[]>(() => [
    {name: "predicted", colour: "accent", values: sorted.map(rate)},
    {name: "if none waited for another", colour: "soft", dash: [6, 4], width: 1.5, values: sorted.map((step) => step.scaling_efficiency > 0 ? rate(step) / step.scaling_efficiency : null)},
  ], [sorted]);
  if (!first) return null;
  return <Plot title="Scaling" x={x} lines={lines} xLabel="GPUs" yLabel={tokens ? "tokens/s" : "samples/s"} xText={(value) => `${whole(value)} GPUs`} xTicks={whole} yText={(value) => `${short(value)}/s`} yTicks={short} />;
}

function StepBars({steps, searched}: {steps: Step[]; searched: boolean}) {
  useScheme();
  const bars: Bar[] = steps.map((step) => ({
    name: steps.every((one) => one.gpus === step.gpus) ? planText(step.plan) : `${plural(step.gpus, "GPU")}, ${planText(step.plan)}`, value: step.step_ms,
    text: `${ms(step.step_ms)}${step.unvalidated.length > 0 ? " *" : ""}`,
    parts: partShares(step.parts_ms).map((share) => ({value: share.value, colour: colour(share.colour)})),
    hint: `${planText(step.plan)}: ${partShares(step.parts_ms).filter((share) => share.value > 0).map((share) => `${share.name} ${ms(share.value)}`).join(", ")}`,
  }));
  const marked = steps.some((step) => step.unvalidated.length > 0) ? `; *: never validated${searched ? ", so ranked by the slow end of its range" : ""}` : "";
  return <Bars title={searched ? "The first plans" : "Steps"} note={`Blue: computation and memory access; green: latency; grey: idle; orange: exchange that nothing hides; violet: bubbles${marked}`} unit="ms" bars={bars} />;
}

export function ScaleView({answers}: {answers: Scale[]}) {
  const all = answers[0];
  const steps = all?.plans ?? all?.steps ?? [];
  const fitting = steps.filter((step) => step.fits);
  // A search ranks its plans itself: what was never validated by the slow end of its range.
  const best = all?.plans ? fitting[0] : fitting[0] && fitting.reduce((a, b) => b.samples_per_second > a.samples_per_second ? b : a);
  const shown = best ?? steps[0];
  if (!all || !shown) return <Verdict tone="bad" below={all ? `${whole(all.considered ?? 0)} plans were considered, ${whole(all.too_large ?? 0)} need more memory than a GPU has.` : ""}>No plan fits.</Verdict>;
  const place = `${all.model}, ${short(all.parameters)} parameters, ${all.precision}; nodes of ${all.node}, ${all.within} within, ${all.between} between.`;
  return (
    <>
      {best ? (
        <Verdict tone="good" below={<>{place}{all.considered !== undefined && <> {whole(all.feasible ?? 0)} of {whole(all.considered)} plans fit.</>}{best.unvalidated.length > 0 && <> Never validated: {best.unvalidated.join("; ")}.</>}</>}>
          {whole(best.gpus)} x {all.gpu} make <em>{rateOf(best)}</em>, a step in {ms(best.step_ms)}: {percent(best.scaling_efficiency)} of perfect scaling.
        </Verdict>
      ) : <Verdict tone="bad" below={place}>{all.model} <em>does not fit</em>: a GPU would hold {bytes(shown.memory.total ?? 0)}.</Verdict>}
      <Facts facts={[
        {name: "Plan", value: planText(shown.plan)}, {name: "Step", value: ms(shown.step_ms), more: msRange(shown.step_low_ms, shown.step_high_ms)}, {name: "Throughput", value: rateOf(shown)},
        {name: "Exchange that shows", value: ms(shown.exposed_ms), more: `of ${ms(shown.exchange_ms)}`}, {name: "Memory of the fullest GPU", value: bytes(shown.memory.total ?? 0)},
        {name: "Of the peak rate", value: percent(shown.model_flops_share)},
        shown.job && {name: "Whole run", value: hours(shown.job.hours), more: shown.job.cost === undefined ? undefined : `costs ${figure(shown.job.cost)}`},
      ]} />
      <Section title="A step">
        <Stack label="Parts of a step" text={ms} shares={partShares(shown.parts_ms)} />
        {new Set(steps.map((step) => step.gpus)).size > 2 && <ScalingCurve steps={all.plans ? [] : steps} />}
        {steps.length > 1 && <StepBars steps={steps.slice(0, 16)} searched={all.plans !== undefined} />}
      </Section>
      <Section title="Memory of the fullest GPU"><Stack label="Memory" shares={memoryShares(shown.memory)} /></Section>
      <Section title={all.plans ? "Plans" : "Numbers of GPUs"}>
        <Table title={all.plans ? "All that fit, best first" : "In figures"} rows={steps} columns={withJob(steps)} first={20} />
        {all.kinds && <Table title="Kinds of GPU" rows={all.kinds} columns={[
          {title: "GPU", value: (row) => row.gpu, left: true}, {title: "GPUs", value: (row) => row.gpus}, {title: "network", value: (row) => row.network, left: true},
          {title: "batch", value: (row) => row.batch}, {title: "own step", value: (row) => row.own_step_ms, show: (row) => ms(row.own_step_ms)},
          {title: "waits", value: (row) => row.waits_ms, show: (row) => `${ms(row.waits_ms)}, ${times(1 + row.waits_ms / Math.max(row.own_step_ms, 1e-9))}`},
          {title: "fits", value: (row) => row.fits ? "yes" : "no", left: true}]} />}
      </Section>
      <Notes title="Assumptions" notes={all.assumptions} />
    </>
  );
}
