// Whether dist/page.html is what the sources make, byte for byte. Exit code 77: the packages are not here.
import {spawnSync} from "node:child_process";
import {existsSync} from "node:fs";

const web = new URL("..", import.meta.url).pathname;
if (!existsSync(`${web}node_modules/esbuild`) || !existsSync(`${web}node_modules/typescript`)) {
  console.log("skipped: the packages are not there; run `npm ci` in web/");
  process.exit(77);
}
for (const [program, ...words] of [["node_modules/.bin/tsc"], [process.execPath, "build.mjs", "--check"]]) {
  const {status} = spawnSync(program, words, {cwd: web, stdio: "inherit"});
  if (status !== 0) process.exit(1);
}
