// Runs the browser tests against a built program: node tests/run.mjs PROGRAM [reports|screens]. Exit code 77: something that they need is not here.
import {spawnSync} from "node:child_process";

const [program, only] = process.argv.slice(2);
if (!program) {
  console.error("usage: node tests/run.mjs PROGRAM [reports|screens]");
  process.exit(2);
}
for (const name of only ? [only] : ["reports", "screens"]) {
  const {status} = spawnSync(process.execPath, [new URL(`${name}.mjs`, import.meta.url).pathname, program], {stdio: "inherit"});
  if (status !== 0) process.exit(status ?? 1);
}
