// Trust: how far predictions lie from measurements, by what was judged, and the user's own runs against their forecasts.
import {useEffect, useMemo, useState} from "preact/hooks";
import {figure, ms, percent, plural, tick, whole} from "../format";
import {Bars} from "../ui/bars";
import {Section, Verdict} from "../ui/parts";
import {Plot} from "../ui/plot";
import {Table} from "../ui/table";
import {shortGpu} from "../views/compare";
import {FaultNote, problemOf} from "./asking";
import type {Problem} from "./api";
import type {ScreenProps} from "./controls";

interface Errors {
  count: number;
  mre: number;
  median?: number;
  p90?: number;
  bias?: number;
}

interface Evaluation {
  quantity: string;
  all: Errors;
  by_bound?: Record<string, Errors>;
  ratios?: number[];
}

interface Accuracy {
  h200?: {date: string; examples: number; predictors: {label: string; trained_on: string; evaluations: Evaluation[]; ood?: Evaluation[]}[]};
  gpus?: {date: string; gpus: {gpu: string; source: string; runs: number; mre: number; bias: number; held: number; roofline_mre: number}[]; runs: {source: string; gpu: string; model: string; what: string; batch: number; measured_ms: number; predicted_ms: number}[]};
}

interface Measured {
  result: string;
  created: string;
  model?: string | null;
  gpu?: string | null;
  batch?: number | null;
  iter_ms: number | null;
  machine: string | null;
  forecast?: {iter_ms: number | null; model?: string | null; gpu?: string | null};
  forecast_iter_ms?: number | null;
}

const kQuantities: Record<string, string> = {iteration_ms: "iteration time", gpu_busy_ms: "GPU busy time", peak_bytes: "peak memory"};

function Ratios({evaluation}: {evaluation: Evaluation}) {
  const ratios = evaluation.ratios ?? [];
  const x = useMemo(() => ratios.map((_, i) => (i / Math.max(ratios.length - 1, 1)) * 100), [ratios]);
  const lines = useMemo(() => [{name: "predicted over measured", colour: "accent", values: ratios}], [ratios]);
  if (ratios.length < 3) return null;
  return <Plot title="Predicted over measured iteration time" note="Sorted over the judged runs: 1 is exact" x={x} lines={lines} marks={[{y: 1, text: "exact", tone: "soft"}]} xLabel="percent of the runs" yLabel="ratio"
    xText={(value) => `${figure(value)} % of the runs below`} xTicks={figure} yText={figure} yTicks={tick} height={240} />;
}

export function Trust({api}: ScreenProps) {
  const [accuracy, setAccuracy] = useState<Accuracy | null>(null);
  const [measured, setMeasured] = useState<Measured[]>([]);
  const [fault, setFault] = useState<Problem | null>(null);
  useEffect(() => {
    api.get("/accuracy").then((answer) => setAccuracy(answer as Accuracy), (error) => setFault(problemOf(error)));
    api.get("/measurements").then((answer) => setMeasured(Array.isArray(answer) ? answer as Measured[] : (answer as {measurements?: Measured[]}).measurements ?? []), () => undefined);
  }, []);
  if (!accuracy) return <><FaultNote problem={fault} />{!fault && <p class="note">Asking ...</p>}</>;
  const own = accuracy.h200?.predictors.find((one) => one.label === "forerun");
  const time = own?.evaluations.find((one) => one.quantity === "iteration_ms");
  const gpus = accuracy.gpus?.gpus ?? [];
  const rows = (own?.evaluations ?? []).flatMap((one) => [{what: kQuantities[one.quantity] ?? one.quantity, part: "all", ...one.all}, ...Object.entries(one.by_bound ?? {}).map(([bound, errors]) => ({what: kQuantities[one.quantity] ?? one.quantity, part: `bound by the ${bound === "gpu" ? "GPU" : bound}`, ...errors}))]);
  const forecast = (row: Measured) => row.forecast?.iter_ms ?? row.forecast_iter_ms ?? null;
  return (
    <>
      <FaultNote problem={fault} />
      {time && (
        <Verdict below={`${plural(time.all.count, "run")} on an H200, of model families that nothing was learned from; judged ${accuracy.h200?.date ?? ""}.`}>
          Half of the iteration times are within <em>{percent(time.all.median ?? time.all.mre)}</em> of what was measured, nine of ten within {percent(time.all.p90 ?? 0)}.
        </Verdict>
      )}
      <Section title="On the GPU that was measured op by op">
        {time && <Ratios evaluation={time} />}
        <Table title="Errors" rows={rows} columns={[
          {title: "of", value: (row) => row.what, left: true}, {title: "runs", value: (row) => row.part, left: true}, {title: "number", value: (row) => row.count, show: (row) => whole(row.count)},
          {title: "median error", value: (row) => row.median, show: (row) => row.median === undefined ? "" : percent(row.median)}, {title: "mean", value: (row) => row.mre, show: (row) => percent(row.mre)},
          {title: "9 of 10 within", value: (row) => row.p90, show: (row) => row.p90 === undefined ? "" : percent(row.p90)}, {title: "leaning", value: (row) => row.bias, show: (row) => row.bias === undefined ? "" : percent(row.bias)}]} />
      </Section>
      {gpus.length > 0 && (
        <Section title="On other GPUs, against tables of others">
          <Bars title="Mean error of whole models" note="Beside it: how far a roofline alone is off" unit="mean relative error" bars={gpus.map((row) => ({name: `${shortGpu(row.gpu)}, ${row.source}`, value: row.mre, text: `${percent(row.mre)} of ${plural(row.runs, "run")}; roofline ${percent(row.roofline_mre)}`}))} />
          <Table title="In figures" rows={gpus} columns={[
            {title: "GPU", value: (row) => row.gpu, left: true}, {title: "measured by", value: (row) => row.source, left: true}, {title: "runs", value: (row) => row.runs}, {title: "mean error", value: (row) => row.mre, show: (row) => percent(row.mre)},
            {title: "leaning", value: (row) => row.bias, show: (row) => percent(row.bias)}, {title: "within its range", value: (row) => row.held, show: (row) => percent(row.held)}, {title: "roofline", value: (row) => row.roofline_mre, show: (row) => percent(row.roofline_mre)}]} />
          <Table title="Every judged run" rows={accuracy.gpus?.runs ?? []} columns={[
            {title: "model", value: (row) => row.model, left: true}, {title: "GPU", value: (row) => shortGpu(row.gpu), left: true}, {title: "what", value: (row) => row.what, left: true}, {title: "batch", value: (row) => row.batch}, {title: "measured", value: (row) => row.measured_ms, show: (row) => ms(row.measured_ms)},
            {title: "predicted", value: (row) => row.predicted_ms, show: (row) => ms(row.predicted_ms)}, {title: "off", value: (row) => row.predicted_ms / row.measured_ms - 1, show: (row) => percent(row.predicted_ms / row.measured_ms - 1)}, {title: "measured by", value: (row) => row.source, left: true}]} />
        </Section>
      )}
      <Section title="Your own runs">
        {measured.length === 0 ? <p class="note">None yet. Keep a forecast, open it in History, and say there what the run really took.</p> : (
          <Table title="Forecast and measurement" rows={measured} columns={[
            {title: "model", value: (row) => row.model ?? row.forecast?.model, left: true}, {title: "GPU", value: (row) => row.gpu ?? row.forecast?.gpu, left: true}, {title: "machine", value: (row) => row.machine, left: true},
            {title: "forecast", value: forecast, show: (row) => forecast(row) === null ? "" : ms(forecast(row) ?? 0)}, {title: "measured", value: (row) => row.iter_ms, show: (row) => row.iter_ms === null ? "" : ms(row.iter_ms)},
            {title: "off", value: (row) => (forecast(row) ?? 0) / (row.iter_ms || 1) - 1, show: (row) => forecast(row) === null || !row.iter_ms ? "" : percent((forecast(row) ?? 0) / row.iter_ms - 1)}]} />)}
      </Section>
    </>
  );
}
