// What does VS Code's own tokenizer say of a text? Reads {grammar, texts} as JSON from standard input and writes, for
// each text, its stretches [from, to, [scope, …]] as JSON. Positions count UTF-16 units.
const fs = require("fs");
const path = require("path");
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

async function main() {
  const { grammar, texts } = JSON.parse(fs.readFileSync(0, "utf8"));
  const wasm = path.join(path.dirname(require.resolve("vscode-oniguruma")), "onig.wasm");
  await oniguruma.loadWASM(fs.readFileSync(wasm).buffer);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => grammar,
  });
  const loaded = await registry.loadGrammar(grammar.scopeName);
  process.stdout.write(JSON.stringify(texts.map((text) => stretches(loaded, text))));
}

function stretches(grammar, text) {
  const found = [];
  let stack = textmate.INITIAL;
  let start = 0;
  for (const line of text.split("\n")) {
    const result = grammar.tokenizeLine(line, stack);
    for (const token of result.tokens) {
      const end = Math.min(token.endIndex, line.length);
      if (token.startIndex < end) found.push([start + token.startIndex, start + end, token.scopes]);
    }
    stack = result.ruleStack;
    start += line.length + 1;
  }
  return found;
}

main();
