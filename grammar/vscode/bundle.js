// Makes dist/extension.js of the extension and the packages it needs, and THIRD-PARTY.txt of the licences of these.
"use strict";

const fs = require("fs");
const path = require("path");
const esbuild = require("esbuild");

const result = esbuild.buildSync({
  entryPoints: ["extension.js"],
  outfile: "dist/extension.js",
  bundle: true,
  minify: true,
  platform: "node",
  target: "node18",
  external: ["vscode"],
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});

const packages = new Set();
for (const file of Object.keys(result.metafile.inputs)) {
  const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file);
  if (match) packages.add(match[1]);
}
const notices = [...packages].sort().map((folder) => {
  const { name, version } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
  const licence = fs.readdirSync(folder).find((file) => /^licen[sc]e/i.test(file));
  if (!licence) throw new Error(`${name} ${version} has no licence file`);
  return `${name} ${version}\n\n${fs.readFileSync(path.join(folder, licence), "utf8").trim()}\n`;
});
fs.writeFileSync("THIRD-PARTY.txt", notices.join(`\n${"-".repeat(80)}\n\n`));
