// The largest batch (or length, or image) that fits, and what would let a larger one in.
import type {Prediction, Series} from "../answers";
import {bytes, figure, percent, times, whole} from "../format";
import {Bars} from "../ui/bars";
import {Facts, Notes, Section, Verdict} from "../ui/parts";
import {Table} from "../ui/table";
import {PredictBody, PredictFacts} from "./predict";

export interface Change {
  name: string;
  how: string;
  saved_bytes: number;
  time_factor: number;
  time_modelled: boolean;
  largest: number | null;
  note: string;
}

export interface Fit {
  schema: string;
  axis: string;
  largest: number | null;
  step: number;
  monotone: boolean;
  fits_again?: number | null;
  limit: string;
  reserve: number;
  margin: number;
  graphs: number;
  next?: {value: number; verdict: string; peak_reserved: number};
  changes: Change[];
  prediction: Prediction;
}

export function FitVerdictLine({fit}: {fit: Fit}) {
  const p = fit.prediction;
  const below = fit.limit || (fit.next ? `${whole(fit.next.value)} would take ${bytes(fit.next.peak_reserved + p.context)} of the GPU's ${bytes(p.device_memory)}.` : "");
  if (fit.largest === null) return <Verdict tone="bad" below={below}>Not even the smallest {fit.axis} of {p.id} <em>surely fits</em> on {p.gpu}.</Verdict>;
  return (
    <Verdict tone="good" below={<>{below} Kept free for runs that take more than predicted: {percent(fit.margin)}.</>}>
      The largest {fit.axis} of {p.id} that fits on {p.gpu} is <em>{whole(fit.largest)}</em>.
    </Verdict>
  );
}

export function ChangeTable({changes, apply}: {changes: Change[]; apply?: (change: Change) => ((change: Change) => void) | null}) {
  return (
    <Table title="In detail" rows={changes} columns={[
      {title: "change", value: (row) => row.name, left: true, wide: true},
      {title: "largest", value: (row) => row.largest, show: (row) => row.largest === null ? "none" : whole(row.largest)},
      {title: "memory saved", value: (row) => row.saved_bytes, show: (row) => bytes(row.saved_bytes)},
      {title: "time", value: (row) => row.time_factor, show: (row) => times(row.time_factor) + (row.time_modelled ? ", rule of thumb" : "")},
      {title: "how", value: (row) => row.how, left: true, wide: true},
      {title: "note", value: (row) => row.note, left: true, wide: true},
      ...(apply ? [{title: "apply", value: () => "", left: true, show: (row: Change) => {
        const action = apply(row);
        return action ? <button type="button" class="quiet" aria-label={`Apply ${row.name}`} onClick={() => action(row)}>Apply</button> : "";
      }}] : []),
    ]} />
  );
}

export function FitView({answers, series}: {answers: Fit[]; series: Series}) {
  const fit = answers[0];
  if (!fit) return <Verdict>Nothing was asked.</Verdict>;
  const changes = fit.changes.filter((change) => change.largest !== null);
  return (
    <>
      <FitVerdictLine fit={fit} />
      {fit.changes.length > 0 && (
        <Section title="What would let a larger one in">
          {changes.length > 0 && <Bars title={`Largest ${fit.axis} with each change`} unit={fit.axis} bars={[
            {name: "as asked", value: fit.largest ?? 0, text: fit.largest === null ? "none" : whole(fit.largest), tone: "faint"},
            ...changes.map((change) => ({name: change.name, value: change.largest ?? 0, text: `${whole(change.largest ?? 0)}, time ${times(change.time_factor)}`, hint: `${change.how}. ${change.note}`})),
          ]} />}
          <ChangeTable changes={fit.changes} />
        </Section>
      )}
      <Section title={fit.largest === null ? "The smallest" : `With ${fit.axis} ${whole(fit.largest)}`}>
        <PredictFacts p={fit.prediction} />
      </Section>
      <PredictBody p={fit.prediction} series={series} />
      <Section title="The search">
        <Facts facts={[
          {name: "Configurations built", value: whole(fit.graphs)}, {name: "Step of the values", value: whole(fit.step)},
          fit.reserve > 0 && {name: "Kept free for others", value: bytes(fit.reserve)}, {name: "Margin", value: `${figure(fit.margin * 100)} %`},
        ]} />
        {!fit.monotone && <Notes title="To know" open notes={[fit.fits_again
          ? `${whole(fit.fits_again)} fits again, above some that do not.` : "Not every smaller value fits too."]} />}
      </Section>
    </>
  );
}
