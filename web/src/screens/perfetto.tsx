// Perfetto: hands an uploaded trace over to ui.perfetto.dev, in a window of its own and when one clicks, never before. The bytes go
// from this window to that one within the browser: Perfetto's page answers "PONG" to "PING" once it listens, and takes a buffer.
import {useEffect, useState} from "preact/hooks";
import {bytes} from "../format";
import {Verdict} from "../ui/parts";
import type {Api, Problem, Upload} from "./api";
import {FaultNote, problemOf} from "./asking";

const kPerfetto = "https://ui.perfetto.dev";
const kPatience = 30_000;  // milliseconds until its page must have answered

export const perfettoLink = (id: string): string => `/perfetto#${id}`;
export const contentLink = (api: Api, id: string): string => api.link(`/uploads/${id}/content`);

// Resolves when the page in the window listens.
function listening(other: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearInterval(timer);
      clearTimeout(limit);
      removeEventListener("message", heard);
      settle();
    };
    const heard = (event: MessageEvent) => {
      if (event.origin === kPerfetto && event.data === "PONG") end(resolve);
    };
    const timer = setInterval(() => other.postMessage("PING", kPerfetto), 50);
    const limit = setTimeout(() => end(() => reject(new Error("ui.perfetto.dev does not answer. Is there a network?"))), kPatience);
    addEventListener("message", heard);
  });
}

export function PerfettoPage({api}: {api: Api}) {
  const id = location.hash.slice(1);
  const [upload, setUpload] = useState<Upload | null>(null);
  const [state, setState] = useState("");
  const [fault, setFault] = useState<Problem | null>(null);
  useEffect(() => {
    document.title = "Perfetto - Forerun";
    api.get(`/uploads/${encodeURIComponent(id)}`).then((answer) => setUpload(answer as Upload), (error) => setFault(problemOf(error)));
  }, [api, id]);
  const hand = async (name: string) => {
    const other = open(kPerfetto);
    if (!other) return setState("The browser let no window open. Allow it for this page, or save the trace and open it there.");
    setState("Waiting for ui.perfetto.dev ...");
    try {
      const [content] = await Promise.all([api.content(`/uploads/${id}/content`), listening(other)]);
      other.postMessage({perfetto: {buffer: content, title: name}}, kPerfetto, [content]);
      setState("Handed over: it is in the other window.");
    } catch (error) {
      setState(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <main>
      <FaultNote problem={fault} />
      {upload && (
        <>
          <Verdict below="A click loads the page of ui.perfetto.dev from the network, and hands it the trace within this browser. Nothing is asked of it before.">Open {upload.name} ({bytes(upload.bytes)}) in Perfetto?</Verdict>
          <p class="next">
            <button type="button" class="primary" onClick={() => void hand(upload.name)}>Open in ui.perfetto.dev</button>{" "}
            <a class="quiet" href={contentLink(api, id)} download={upload.name}>Save the trace</a>
          </p>
          <p class="note" role="status">{state || "Perfetto reads .json and .gz. Without a network: save the trace, and open it in a Perfetto of your own, or in chrome://tracing."}</p>
        </>
      )}
    </main>
  );
}
