// An editor for tests: loads the extension with a `vscode` that notes what it is asked for, and plays through it.
// Arguments: the file of the extension, the folder of the workspace, a plan file in it. Writes what was noted, as JSON.
"use strict";

const Module = require("module");
const [extension, folder, file] = process.argv.slice(2);
const noted = { commands: {}, servers: [], tasks: [], errors: [], saved: 0, stopped: 0 };

class Uri {
  constructor(text) {
    this.text = text;
    this.scheme = text.split(":")[0];
    this.fsPath = this.scheme === "file" ? decodeURIComponent(new URL(text).pathname) : "";
  }
  static parse(text) {
    return new Uri(text);
  }
  toString() {
    return this.text;
  }
}

const open = { uri: new Uri("file://" + file), isDirty: true, save: async () => void (noted.saved += 1) };
const vscode = {
  Uri,
  TaskScope: { Workspace: 2 },
  ProcessExecution: class {
    constructor(program, words, options) {
      Object.assign(this, { program, words, options });
    }
  },
  Task: class {
    constructor(definition, scope, name, source, execution) {
      Object.assign(this, { name, execution });
    }
  },
  commands: {
    registerCommand: (name, run) => ((noted.commands[name] = run), { dispose() {} }),
    executeCommand: async (...words) => noted.errors.push(words.join(" ")),
  },
  tasks: { executeTask: async (task) => noted.tasks.push({ name: task.name, ...task.execution }) },
  window: {
    activeTextEditor: { document: open },
    showErrorMessage: async (text, ...choices) => (noted.errors.push(text), choices[0]),
  },
  workspace: {
    isTrusted: true,
    workspaceFolders: [{ uri: new Uri("file://" + folder) }],
    textDocuments: [open],
    getConfiguration: () => ({ get: () => "" }),
    createFileSystemWatcher: (pattern) => pattern,
    getWorkspaceFolder: () => vscode.workspace.workspaceFolders[0],
    onDidGrantWorkspaceTrust: () => ({ dispose() {} }),
    onDidChangeConfiguration: () => ({ dispose() {} }),
  },
};
class LanguageClient {
  constructor(id, name, server, options) {
    noted.servers.push({ server, options, features: (this.features = []) });
    for (const method of ["workspace/executeCommand", "textDocument/hover"]) {
      this.registerFeature({ registrationType: { method } });
    }
    this.registerFeature({});
  }
  registerFeature(feature) {
    this.features.push(feature.registrationType ? feature.registrationType.method : "static");
  }
  async start() {
    if (process.env.NO_SERVER) throw new Error("spawn forgeplan ENOENT");
  }
  async stop() {
    noted.stopped += 1;
  }
}

const load = Module._load;
Module._load = (name, ...rest) =>
  name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);

async function play() {
  const { activate, deactivate } = require(extension);
  await activate({ subscriptions: [] });
  if (!process.env.NO_SERVER) {
    await noted.commands["forgeplan.run"]("file://" + file, "small");
    await noted.commands["forgeplan.compile"]();
    await noted.commands["forgeplan.explain"]("untitled:new");
    await noted.commands["forgeplan.restart"]();
  }
  await deactivate();
  noted.commands = Object.keys(noted.commands);
  process.stdout.write(JSON.stringify(noted));
}

play();
