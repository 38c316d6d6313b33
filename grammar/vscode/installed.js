// Are the packages of package.json installed, in the versions it names? The exit code says it; nothing is fetched.
"use strict";

const { devDependencies } = require("./package.json");

const missing = Object.entries(devDependencies).filter(([name, version]) => {
  try {
    return require(`./node_modules/${name}/package.json`).version !== version;
  } catch {
    return true;
  }
});
process.exitCode = missing.length ? 1 : 0;
