// Builds dist/page.html: script, style and the licences of what they are made of in one file, the same bytes each time.
// With --check nothing is written, and a file that differs from what is there is an error.
import {createHash} from "node:crypto";
import {readFileSync, writeFileSync} from "node:fs";
import {build} from "esbuild";

const here = new URL(".", import.meta.url).pathname;
const output = here + "dist/page.html";
const bundled = ["preact", "uplot"];

async function bundle(entry, loader) {
  const result = await build({
    entryPoints: [here + entry], bundle: true, minify: true, write: false, charset: "ascii", target: "es2022",
    format: "iife", legalComments: "none", jsx: "automatic", jsxImportSource: "preact", loader,
  });
  return result.outputFiles[0].text.trim();
}

const notices = () => bundled.map((name) => {
  const {version} = JSON.parse(readFileSync(`${here}node_modules/${name}/package.json`, "utf8"));
  return `${name} ${version}\n\n${readFileSync(`${here}node_modules/${name}/LICENSE`, "utf8").trim()}`;
}).join("\n\n");

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = await bundle("src/main.tsx");
const style = await bundle("src/style.css");
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data: blob:; ` +
  `connect-src __FORERUN_CONNECT__; base-uri 'none'; form-action 'none'`;
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>__FORERUN_TITLE__</title>
<!--
This page contains:

${notices()}
-->
<style>${style}</style>
</head>
<body>
<div id="page"></div>
<noscript>This page draws its charts and tables with JavaScript, which is switched off. The data is in the page's source.</noscript>
<script type="application/json" id="data">__FORERUN_DATA__</script>
<script>${script}</script>
</body>
</html>
`;

const problems = [];
if (/[^\n\x20-\x7e]/.test(page)) problems.push("it has letters that are not ASCII");
if (/<\/script|<!--/i.test(script)) problems.push("its script would end within itself");
if (/<\/style/i.test(style)) problems.push("its style would end within itself");
if (page.includes(")~page~\"")) problems.push("it ends the literal that CMake embeds it in");
if (page.length > 300_000) problems.push(`it has ${page.length} bytes, more than 300000`);
if (process.argv.includes("--check") && readFileSync(output, "utf8") !== page) {
  problems.push("dist/page.html is not what the sources make: run `npm run build` and commit it");
}
for (const problem of problems) console.error(`web: ${problem}`);
if (problems.length > 0) process.exit(1);
if (!process.argv.includes("--check")) writeFileSync(output, page);
console.log(`dist/page.html: ${page.length} bytes, script ${script.length}, style ${style.length}`);
