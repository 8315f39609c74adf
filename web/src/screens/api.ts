// Asking the server: questions in the words of the command line, answers as `--json` prints them. A fault says what, where and
// what to do, as the program does.

export interface Problem {
  title: string;
  detail: string;
  where: string;
  remedy: string;
}

export class Fault extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
  }
}

export type Words = Record<string, unknown>;

export interface Job {
  id: string;
  question: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  progress?: {what: string; done: number; total: number};
  result: string | null;
  error: Problem | string | null;
}

export interface Upload {
  id: string;
  kind: string;
  verbs: string[];
  bytes: number;
  name: string;
}

async function read(response: Response): Promise<unknown> {
  const text = await response.text();
  let body: unknown = null;
  try {
    body = text === "" ? null : JSON.parse(text);
  } catch {
    throw new Fault({title: `The server answered ${response.status} with something that is no JSON`, detail: "", where: "", remedy: "look at what `forerun serve` printed"});
  }
  if (response.ok) return body;
  const problem = (body ?? {}) as Partial<Problem>;
  const lost = response.status === 401 || response.status === 403;
  throw new Fault({
    title: problem.title ?? `The server answered ${response.status}`, detail: problem.detail ?? "", where: problem.where ?? "",
    remedy: problem.remedy ?? (lost ? "open the link again that `forerun serve` printed" : ""),
  });
}

export class Api {
  private answers = new Map<string, unknown>();

  constructor(private readonly base: string) {}

  private async fetched(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(this.base + path, {credentials: "same-origin", ...init});
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new Fault({title: "The server does not answer", detail: "", where: "", remedy: "is `forerun serve` still running?"});
    }
  }

  private async call(path: string, init: RequestInit): Promise<unknown> {
    return read(await this.fetched(path, init));
  }

  link(path: string): string {
    return this.base + path;
  }

  async content(path: string): Promise<ArrayBuffer> {
    const response = await this.fetched(path, {});
    if (!response.ok) await read(response);
    return response.arrayBuffer();
  }

  get(path: string, signal?: AbortSignal): Promise<unknown> {
    return this.call(path, {signal});
  }

  private send(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
    return this.call(path, {method, signal, headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
  }

  post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
    return this.send("POST", path, body, signal);
  }

  put(path: string, body: unknown): Promise<unknown> {
    return this.send("PUT", path, body);
  }

  remove(path: string): Promise<unknown> {
    return this.call(path, {method: "DELETE"});
  }

  // The same question has the same answer: it is asked once.
  async ask(question: string, words: Words, signal?: AbortSignal): Promise<unknown> {
    const key = `${question} ${JSON.stringify(words)}`;
    if (this.answers.has(key)) return this.answers.get(key);
    const answer = await this.post(`/${question}`, words, signal);
    if (this.answers.size > 60) this.answers.delete(this.answers.keys().next().value ?? "");
    this.answers.set(key, answer);
    return answer;
  }

  // Asks in the background, and has `progress` hear how far it is.
  async run(question: string, body: Words, progress: (job: Job) => void, signal: AbortSignal): Promise<unknown> {
    let job = await this.post("/jobs", {question, body}, signal) as Job;
    for (let wait = 60; job.state === "waiting" || job.state === "running"; wait = Math.min(wait * 1.3, 1000)) {
      progress(job);
      await new Promise((resolve) => setTimeout(resolve, wait));
      if (signal.aborted) {
        void this.remove(`/jobs/${job.id}`).catch(() => undefined);
        throw new DOMException("stopped", "AbortError");
      }
      job = await this.get(`/jobs/${job.id}`) as Job;
    }
    if (job.state === "done" && job.result) return ((await this.get(`/results/${job.result}`, signal)) as {answer: unknown}).answer;
    const error = typeof job.error === "string" ? {detail: job.error} : job.error ?? {};
    throw new Fault({title: `The question ${job.state === "cancelled" ? "was cancelled" : "failed"}`, detail: "", where: "", remedy: "", ...error});
  }

  upload(file: File, progress: (share: number) => void): Promise<Upload> {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", `${this.base}/uploads?name=${encodeURIComponent(file.name)}`);
      request.setRequestHeader("Content-Type", "application/octet-stream");
      request.upload.onprogress = (event) => progress(event.lengthComputable ? event.loaded / event.total : 0);
      request.onerror = () => reject(new Fault({title: "The upload was cut off", detail: "", where: file.name, remedy: "is `forerun serve` still running?"}));
      request.onload = () => read(new Response(request.responseText, {status: request.status})).then((body) => resolve(body as Upload), reject);
      request.send(file);
    });
  }
}
