// Which view shows an answer: by its schema. What is not listed is shown by its fields (generic.tsx).
import type {ComponentChildren} from "preact";
import type {Answer, Prediction, Report, Series} from "../answers";
import {CompareView, type Compared} from "./compare";
import {FitView, type Fit} from "./fit";
import {EvalView, GenericView} from "./generic";
import {CheckView, DataSummaryView, DevicesView, MemoryReplayView, RecordingView, ReplayView, ZooCheckView, type DeviceRow, type FamilyCheck, type Guards, type MemoryReplay, type Recording, type Replay} from "./others";
import {PredictView} from "./predict";
import {ScaleView, type Scale} from "./scale";
import {ScheduleView, type Outcome} from "./schedule";
import {SweepView, type Case} from "./sweep";
import {TraceCompareView, TraceView, type TraceAnswer, type TraceCompare} from "./trace";
import {WhatIfSweepView, WhatIfView, type WhatIf, type WhatIfSweep} from "./whatif";

type View = (answers: Answer[], series: Series) => ComponentChildren;

const as = <T,>(answers: Answer[]): T[] => answers as unknown as T[];

const kViews: Record<string, View> = {
  "forerun.predict": (answers, series) => <PredictView answers={as<Prediction>(answers)} series={series} />,
  "forerun.fit": (answers, series) => <FitView answers={as<Fit>(answers)} series={series} />,
  "forerun.compare": (answers) => <CompareView answers={as<Compared>(answers)} />,
  "forerun.sweep": (answers) => <SweepView answers={as<Case>(answers)} />,
  "forerun.whatif": (answers) => <WhatIfView answers={as<WhatIf>(answers)} />,
  "forerun.whatif.sweep": (answers) => <WhatIfSweepView answers={as<WhatIfSweep>(answers)} />,
  "forerun.scale": (answers) => <ScaleView answers={as<Scale>(answers)} />,
  "forerun.scale.testbed": (answers) => <RecordingView answers={as<Recording>(answers)} />,
  "forerun.schedule": (answers, series) => <ScheduleView answers={as<Outcome>(answers)} jobsCsv={typeof series.jobs === "string" ? series.jobs : undefined}
    leftOut={typeof series.jobs_left_out === "number" ? series.jobs_left_out : undefined} />,
  "forerun.trace": (answers, series) => <TraceView answers={as<TraceAnswer>(answers)} series={series} />,
  "forerun.trace.compare": (answers) => <TraceCompareView answers={as<TraceCompare>(answers)} />,
  "forerun.replay": (answers) => <ReplayView answers={as<Replay>(answers)} />,
  "forerun.memory.replay": (answers) => <MemoryReplayView answers={as<MemoryReplay>(answers)} />,
  "forerun.check": (answers) => <CheckView answers={as<Guards>(answers)} />,
  "forerun.devices": (answers) => <DevicesView answers={as<DeviceRow>(answers)} />,
  "forerun.zoo.check": (answers) => <ZooCheckView answers={as<FamilyCheck>(answers)} />,
  "forerun.data.summary": (answers) => <DataSummaryView answers={answers} />,
  "resources": (answers) => <RecordingView answers={as<Recording>(answers)} />,
};

export function AnswerView({report}: {report: Report}) {
  const schema = (report.answers[0]?.schema ?? "").split("/")[0] ?? "";
  const view = schema.startsWith("forerun.eval") ? (answers: Answer[]) => <EvalView answers={answers} /> : kViews[schema];
  return <>{view ? view(report.answers, report.series) : <GenericView answers={report.answers} verb={report.verb} />}</>;
}
