// A place to drop files, or to choose them: they are sent to this server alone, and shown when they are there.
import {useRef, useState} from "preact/hooks";
import type {Api, Problem, Upload} from "./api";
import {FaultNote, problemOf} from "./asking";
import {percent} from "../format";

interface DropProps {
  api: Api;
  label: string;
  note: string;
  several?: boolean;
  onDone: (uploads: Upload[]) => void;
}

export function Drop({api, label, note, several = false, onDone}: DropProps) {
  const input = useRef<HTMLInputElement>(null);
  const [state, setState] = useState("");
  const [over, setOver] = useState(false);
  const [fault, setFault] = useState<Problem | null>(null);
  const send = async (files: FileList | null | undefined) => {
    if (!files || files.length === 0) return;
    setFault(null);
    try {
      const uploads: Upload[] = [];
      for (const file of [...files].slice(0, several ? 64 : 1)) {
        uploads.push(await api.upload(file, (share) => setState(`${file.name}: ${percent(share)}`)));
      }
      onDone(uploads);
    } catch (error) {
      setFault(problemOf(error));
    }
    setState("");
  };
  return (
    <div class={over ? "drop over" : "drop"} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
      onDrop={(event) => { event.preventDefault(); setOver(false); void send(event.dataTransfer?.files); }}>
      <p><button type="button" class="primary" onClick={() => input.current?.click()}>{label}</button> or drop {several ? "them" : "it"} here.</p>
      <p class="note">{state || note}</p>
      <input ref={input} type="file" multiple={several} class="hidden" aria-label={label} tabIndex={-1} onChange={(event) => { void send(event.currentTarget.files); event.currentTarget.value = ""; }} />
      <FaultNote problem={fault} />
    </div>
  );
}
