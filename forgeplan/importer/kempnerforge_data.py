"""Where do the data of a KempnerForge file come from?"""

from __future__ import annotations

import re

from forgeplan.importer.draft import word
from forgeplan.importer.packing import pack
from forgeplan.importer.rules import Importing
from forgeplan.importer.spelling import STEP_COUNT, quoted

_FETCHED = "a data set is files, never a name that is fetched: write its token ids to"


def sources(this: Importing) -> None:
    """One source, or several with their weights."""
    if this.flag("data.pack_sequences", False):
        pack(this)
        this.took("data.pack_sequences", "batch.pack = true")
    if this.text("data.tokenizer_path", ""):
        this.lost("data.tokenizer_path", "tokenizer = bpe takes a tokenizer.json file, never a name that is fetched")
    tables = sorted({int(found[1]) for key in this.values if (found := re.match(r"data\.datasets\[(\d+)\]\.", key))})
    if tables:
        for index in tables:
            _mixed(this, f"data.datasets[{index}]", index)
        temperature = this.real("data.mix_temperature", 1)
        if temperature != 1:
            this.lost("data.mix_temperature", "write the weights themselves: they are taken as they are")
        else:
            this.took("data.mix_temperature", "mixture")
        return
    path, fetched = this.text("data.dataset_path", ""), this.text("data.hf_dataset_name", "")
    if path or not fetched:
        _files(this, "data", "data.dataset_path", "data.file_pattern", path)
    else:
        _by_name(this, fetched)


def _free(this: Importing, name: str) -> str:
    """The name, or with a number behind it where a source has it already."""
    taken = this.draft.root.fields["sources"].fields if "sources" in this.draft.root.fields else {}
    return next(free for free in (name, *(f"{name}_{n}" for n in range(2, len(taken) + 3))) if free not in taken)


def _files(this: Importing, name: str, path_key: str, pattern_key: str, path: str) -> None:
    pattern = this.text(pattern_key, "*.npy")
    glob = f"{path.rstrip('/') or 'data'}/{pattern}"
    this.draft.root.at(f"sources.{name}").text = "tokens"
    this.draft.set(f"sources.{name}.path", quoted(glob))
    how = ""
    if pattern.endswith(".bin"):
        this.draft.set(f"sources.{name}.dtype", "uint32")
        how = "raw files say nothing of their dtype: uint32, as there for files of a multiple of four bytes"
    if path:
        this.took(path_key, f"sources.{name}.path = {quoted(glob)}")
    else:
        this.ignored(path_key, "no data are named")
        this.assumed.append("data: none are named, where the program draws random ids; write token ids to data")
    this.took(pattern_key, f"sources.{name}.path = {quoted(glob)}", how)


def _by_name(this: Importing, dataset: str, key: str = "data.hf_dataset_name") -> None:
    name = word(dataset, "data")
    this.draft.set(f"sources.{name}", f"tokens {{ path = {quoted(f'data/{name}/*.npy')} }}", "write its token ids here")
    this.lost(key, f"{_FETCHED} data/{name}")
    for part in ("config", "split", "text_field"):
        this.lost(f"data.hf_dataset_{part}", f"it says which part of {dataset} is meant: write that to data/{name}")
    this.ignored("data.hf_streaming", "files are read as they are needed")


def _mixed(this: Importing, at: str, index: int) -> None:
    path, fetched = this.text(f"{at}.path", ""), this.text(f"{at}.hf_name", "")
    given = this.text(f"{at}.name", "") or path.rstrip("/").rpartition("/")[2] or fetched or f"source_{index}"
    name = _free(this, word(given, "source"))
    if path:
        glob = f"{path.rstrip('/')}/{this.text('data.file_pattern', '*.npy')}"
        dtype = ", dtype = uint32" if glob.endswith(".bin") else ""
        this.draft.set(f"sources.{name}", f"tokens {{ path = {quoted(glob)}{dtype} }}")
        this.took(f"{at}.path", f"sources.{name}.path = {quoted(glob)}")
        this.took("data.file_pattern", "the paths of the sources")
    else:
        target = quoted(f"data/{name}/*.npy")
        this.draft.set(f"sources.{name}", f"tokens {{ path = {target} }}", "write its token ids here")
        this.lost(f"{at}.hf_name", f"{_FETCHED} data/{name}")
        this.lost(f"{at}.hf_config", f"it says which part of {fetched} is meant: write that to data/{name}")
    this.took(f"{at}.name", f"sources.{name}", "" if given == name else "a name has letters, digits and _")
    weight = this.number(f"{at}.weight", 1)
    this.draft.set(f"mixture.{name}", weight)
    this.took(f"{at}.weight", f"mixture.{name} = {weight}")


def evaluation(this: Importing) -> None:
    """Loss on data of their own, if that is switched on."""
    if not this.flag("eval.enabled", False):
        this.took("eval.enabled", "no eval")
        return
    path, fetched = this.text("eval.dataset_path", ""), this.text("eval.hf_dataset_name", "")
    pattern = this.text("eval.file_pattern", "*.npy")
    name = _free(this, "held_out")
    glob = f"{path.rstrip('/')}/{pattern}" if path else f"data/{name}/*.npy"
    dtype = ", dtype = uint32" if glob.endswith(".bin") else ""
    this.draft.set(
        f"sources.{name}", f"tokens {{ path = {quoted(glob)}{dtype} }}", "" if path else "write its token ids here"
    )
    if path:
        this.took("eval.dataset_path", f"sources.{name}.path = {quoted(glob)}")
        this.took("eval.file_pattern", f"sources.{name}.path = {quoted(glob)}")
    for part in ("name", "config", "split"):
        if fetched:
            this.lost(f"eval.hf_dataset_{part}", f"{_FETCHED} data/{name}")
        else:
            this.ignored(f"eval.hf_dataset_{part}", "the data are files")
    if "mixture" not in this.draft.root.fields:
        trained = next(iter(this.draft.root.at("sources").fields))
        this.draft.set(f"mixture.{trained}", "1", f"{name} is for evaluation alone")
    batches = this.whole("eval.steps", 50)
    every = STEP_COUNT.spell(this.whole("eval.interval", 1000))
    this.draft.set("eval.validation.source", name)
    this.put("eval.interval", "eval.validation.every", every)
    ranks = "one step there is a microbatch of each data rank; here, all of them are counted"
    this.put("eval.steps", "eval.validation.batches", f"{batches} * mesh.data_ranks", ranks)
    this.took("eval.enabled", "eval validation { … }")


def phases(this: Importing) -> None:
    """Weights and rates that change on the way."""
    for key in this.values:
        if key.startswith(("data.phases[", "data.anneal_weights")):
            this.lost(key, "weights and rate do not change during a run in this version")
    if this.whole("data.anneal_start_step", 0) > 0:
        this.lost("data.anneal_start_step", "weights do not change during a run in this version")
    else:
        this.ignored("data.anneal_start_step", "nothing is asked for")
