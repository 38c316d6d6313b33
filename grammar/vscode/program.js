// Which forgeplan is started, and with which words? Knows nothing of VS Code, so that it is tested without it.
"use strict";

const path = require("path");

/**
 * The program to start: the one of the settings, else that of a virtual environment in the workspace, else the one on
 * the PATH. A workspace that is not trusted brings no program.
 */
function findProgram({ setting, folders, isTrusted, exists, isWindows }) {
  if (setting) return setting.replace(/^\$\{workspaceFolder\}/, folders[0] || ".");
  const inside = isWindows ? ["Scripts", "forgeplan.exe"] : ["bin", "forgeplan"];
  for (const folder of isTrusted ? folders : []) {
    for (const environment of [".venv", "venv"]) {
      const program = path.join(folder, environment, ...inside);
      if (exists(program)) return program;
    }
  }
  return "forgeplan";
}

/** The words of `forgeplan compile FILE --plan NAME`; the plan may be left out where a file has only one. */
function wordsOf(command, file, plan) {
  return plan ? [command, file, "--plan", plan] : [command, file];
}

module.exports = { findProgram, wordsOf };
