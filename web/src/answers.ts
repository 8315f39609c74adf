// What the page is given: answers as `--json` prints them (docs/schema says what each field is), and series beside them.

export interface Report {
  verb: string;
  command: string;
  made: string;
  version: string;
  answers: Answer[];
  series: Series;
}

export interface Served {
  api: string;
  version: string;
}

export interface Answer {
  schema: string;
  [field: string]: unknown;
}

export interface Series {
  memory?: MemorySeries;
  ops?: OpSeries;
  [name: string]: unknown;
}

export interface Compiled {
  mode: string;
  iter_ms: number;
  iter_low_ms: number;
  iter_high_ms: number;
  gpu_ms: number;
  gpu_low_ms: number;
  gpu_high_ms: number;
  kernels: number;
  eager_kernels: number;
  pointwise: number;
  reductions: number;
  scatters: number;
  libraries: number;
  peak_allocated: number;
  peak_allocated_low: number;
  peak_allocated_high: number;
  peak_reserved: number;
  verdict: FitVerdict;
  job?: Job;
  compile_s?: number;  // not told where kernels are tuned
  graphs: number;
  breaks: {module: string; op: string; why: string; where: string}[];
  largest_kernels: CompiledKernel[];
  library_calls: {name: string; count: number; gpu_ms: number}[];
  assumptions: string[];
}

export interface CompiledKernel {
  kind: string;
  count: number;
  gpu_ms: number;
  bytes: number;
  ops: string;
  module: string;
}

export type FitVerdict = "fits" | "may_not_fit" | "does_not_fit";

export interface CostShare {
  name: string;
  gpu_ms: number;
  share: number;
  ops: number;
  bound: string;
  phase?: string;
  largest?: string;
}

export interface Range {
  low: number;
  expected: number;
  high: number;
}

export interface Job {
  iterations: number;
  hours: number;
  low_hours?: number;
  high_hours?: number;
  gpu_hours: number;
  energy_kwh?: number;
  cost?: number;
  low_cost?: number;
  high_cost?: number;
}

export interface Prediction {
  schema: string;
  warnings?: string[];
  compiled?: Compiled;
  id: string;
  model: string;
  gpu: string;
  batch: number;
  precision: string;
  optimizer: string;
  iter_ms: number;
  iter_low_ms: number;
  iter_high_ms: number;
  gpu_ms: number;
  host_ms: number;
  bound: string;
  phases: {forward_ms: number; backward_ms: number; update_ms: number};
  parts_ms?: Record<string, number>;
  job?: Job;
  samples_per_second: number;
  tokens_per_second?: number;
  params: number;
  ops: number;
  kernels: number;
  peak_allocated: number;
  peak_reserved: number;
  context: number;
  device_memory: number;
  fits: boolean;
  verdict: FitVerdict;
  memory_at_least: boolean;
  memory: Record<string, number>;
  memory_ranges?: Record<string, Range>;
  memory_peak?: {op: string; module: string; phase: string; iteration: number; live: LiveShare[]};
  allocator_retries: number;
  measured_share: number;
  out_of_distribution_ops: Record<string, number>;
  unknown_ops: Record<string, number>;
  costliest_ops?: CostShare[];
  costliest_modules?: CostShare[];
  assumptions?: string[];
  host_remedies?: {kind: string; what: string; iter_ms: number; samples_per_second: number}[];
  data_parallel?: {gpus: number; zero: number};
  with?: {predictor: string; iter_ms?: number; gpu_ms?: number; peak_allocated?: number; trained_on: string[]; notes?: string[]}[];
}

export interface LiveShare {
  module: string;
  kind: string;
  blocks: number;
  bytes: number;
  largest: number;
  largest_of: string;
}

export interface MemorySeries {
  peak: number;
  peak_op: string;
  forward_from: number;
  backward_from: number;
  update_from: number;
  ops: number;
  device_memory: number;
  context: number;
  columns: Record<string, number[]>;
}

export interface OpSeries {
  columns: {
    op: string[]; phase: string[]; module: string[]; gpu_us: number[]; kernels: number[]; bound: string[]; measured: boolean[];
    flops: number[]; bytes: number[];
  };
}
