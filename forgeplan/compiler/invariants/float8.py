"""Can the layers that are meant become float8, on these devices and with these sizes?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import gcd, prod

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, Legal, divisors, invariant, legal, lint, neighbours
from forgeplan.compiler.passes.float8 import IS_SMALL, MULTIPLE, NEVER, Linear, Why
from forgeplan.compiler.patterns import general, meant, module_names
from forgeplan.compiler.wording import amount, listing, plural
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.spec.quantity import TOKENS, Quantity

WITH_FLOAT8 = ("sm89", "sm90", "sm100", "gfx942")
"""Architectures whose products take float8."""
EMULATED = ("fp32", "fp64")
"""Number formats, besides bf16, that emulated products take."""
MOST_SHOWN = 8
"""Kinds of layers that a message lists one by one."""


@invariant("FP0450", "the devices multiply in float8, or `fp8` emulates it")
def devices_have_float8(facts: Facts) -> Iterator[Finding]:
    emulate, arch = facts.get("apply.fp8.emulate"), facts["cluster.arch"]
    if emulate is None or emulate.value or arch.value in WITH_FLOAT8:
        return
    yield devices_have_float8.at(
        f"{arch.value} does not multiply in float8, which NVIDIA devices do from sm89 on and AMD devices from gfx942",
        _fp8(facts),
        arch,
        emulate,
        legal=(legal(facts, emulate.path, [True]),),
    )


@invariant("FP0451", "the rows of every float8 product are a multiple of 16")
def rows_are_a_multiple(facts: Facts) -> Iterator[Finding]:
    converted = [layer for layer in facts.results("float8").layers if layer.why is None]
    micro, length, cp, tp = (facts[path] for path in ("batch.micro", "batch.length", "mesh.cp", "mesh.tp"))
    for local in sorted({layer.of_local_positions for layer in converted}):
        degrees = [degree for degree in (cp, *([tp] if local else [])) if degree.value > 1]
        parts = prod(degree.value for degree in degrees)
        rows, rest = divmod(micro.value * length.value, parts)
        if rest or rows % MULTIPLE == 0:
            continue
        names = [layer.name for layer in converted if layer.of_local_positions == local]
        product = f"{micro.value:,} · {length.value:,}" + "".join(f" ÷ {degree.value:,}" for degree in degrees)
        yield rows_are_a_multiple.at(
            f"{plural(len(names), 'float8 layer')} multiply {product} = {rows:,} rows, and "
            f"{rows:,} % {MULTIPLE} = {rows % MULTIPLE}",
            micro,
            length,
            *degrees,
            _fp8(facts),
            legal=_batches_in_multiples(facts, parts),
            help=_lengths_with_their_batch(facts, parts),
            notes=_listed(Counter(map(general, names))),
        )


def _batches_in_multiples(facts: Facts, parts: int) -> Iterator[Legal]:
    """Sequences of a microbatch, or lengths, whose rows on a rank are a multiple."""
    micro, length, number = (facts[path].value for path in ("batch.micro", "batch.length", "batch.accumulation"))
    step = MULTIPLE * parts // gcd(MULTIPLE * parts, length)
    sizes = [size for size in divisors(micro * number) if size % step == 0]
    yield legal(facts, "batch.micro", sorted({*sizes, *neighbours(micro, step)}))
    yield legal(facts, "batch.length", _lengths(facts, parts))


def _lengths(facts: Facts, parts: int) -> list[int]:
    """The nearest lengths whose rows are a multiple."""
    return neighbours(
        facts["batch.length"].value, MULTIPLE * parts // gcd(MULTIPLE * parts, facts["batch.micro"].value)
    )


def _lengths_with_their_batch(facts: Facts, parts: int) -> Iterator[str]:
    """Where the batch is written in tokens, it changes with the length."""
    total, length = facts["batch.global"], facts["batch.length"]
    if facts["batch.accumulation"].written or total.value.dimension != TOKENS:
        return
    sequences = int(total.value.amount) // length.value
    lengths = [new for new in _lengths(facts, parts) if new <= facts["model.context"].value]
    pairs = [{"batch.length": new, "batch.global": Quantity(new * sequences, TOKENS)} for new in lengths]
    for pair in facts.legal(pairs):
        new, batch = amount(pair["batch.length"], TOKENS), amount(pair["batch.global"].amount, TOKENS)
        yield f"or batch.length = {new} with batch.global = {batch}"


@invariant("FP0452", "a layer that `fp8.include` names can become float8")
def included_layers_can_be_converted(facts: Facts) -> Iterator[Finding]:
    include = facts.get("apply.fp8.include")
    if include is None or include.value == "all":
        return
    layers = facts.results("float8").layers
    odd = [layer for layer in layers if layer.why is Why.MULTIPLE]
    reasons = [*_kinds(odd), *_without_linears(facts, include.value, layers)]
    if not reasons:
        return
    tp, ffn = facts["mesh.tp"], facts["model.ffn"]
    multiple = MULTIPLE * tp.value
    yield included_layers_can_be_converted.at(
        "`include` names what cannot become float8: " + reasons[0],
        include,
        *((tp,) if odd and tp.value > 1 else ()),
        legal=(
            legal(facts, ffn.path, neighbours(ffn.value, multiple) if odd and ffn.value % multiple else []),
            legal(facts, tp.path, [d for d in divisors(tp.value) if d < tp.value] if odd else []),
        ),
        help=("name other layers, or leave these out by `exclude`",),
        notes=reasons[1:],
    )


def _kinds(layers: Iterable[Linear]) -> Iterator[str]:
    """Layers of one size, all at once: `layers.*.mlp.w_up (32 layers, K = 64, N = 120): 120 % 16 = 8`."""
    kinds = Counter((general(layer.name), layer.inputs, layer.outputs, layer.reason) for layer in layers)
    for (name, inputs, outputs, reason), number in kinds.items():
        sizes = f"{plural(number, 'layer')}, K = {inputs:,}, N = {outputs:,}"
        yield f"{name} ({sizes})" + (f": {reason}" if reason else "")


def _without_linears(facts: Facts, patterns: tuple[str, ...], layers: tuple[Linear, ...]) -> Iterator[str]:
    """Patterns that mean modules, and none that could ever become float8."""
    modules = module_names(facts.block("model"))
    reasons = {layer.name: layer.reason for layer in layers if layer.why in NEVER.values()}
    able = [layer.name for layer in layers if layer.name not in reasons]
    for pattern in patterns:
        found = meant([pattern], modules)
        if not found or meant([pattern], able):
            continue
        why = dict.fromkeys(reasons[name] for name in found if name in reasons)
        yield f'"{pattern}": {listing(why, " and ") or "no linear layer"}'


@invariant("FP0453", "`fp8` converts at least one layer")
def some_layer_is_converted(facts: Facts) -> Iterator[Finding]:
    recipe = facts.get("apply.fp8.recipe")
    layers = facts.results("float8").layers
    if recipe is None or any(layer.why is None for layer in layers):
        return
    if _include_is_at_fault(facts):
        return
    counts = Counter(layer.why.value for layer in layers if layer.why is not None)
    small, exclude = facts["apply.fp8.small"], facts["apply.fp8.exclude"]
    reasons = {layer.why for layer in layers}
    yield some_layer_is_converted.at(
        f"fp8 would convert none of {plural(len(layers), 'linear layer')}: "
        f"{listing(f'{number:,} {why}' for why, number in counts.items())}",
        _fp8(facts),
        *((recipe, small) if Why.SMALL in reasons else ()),
        *((exclude,) if Why.EXCLUDED in reasons else ()),
        legal=(
            legal(facts, small.path, ["convert"]),
            legal(facts, recipe.path, list(IS_SMALL)),
            legal(facts, exclude.path, [("head",), ()] if exclude.written else []),
        ),
        help=("or drop `fp8`",),
        changes=(Change("apply.fp8", None),),
        notes=list(_kinds(layers))[:MOST_SHOWN],
    )


def _include_is_at_fault(facts: Facts) -> bool:
    """Whether another check says already that `include` names nothing that could be converted."""
    include = facts["apply.fp8.include"].value
    if include == "all":
        return False
    modules = module_names(facts.block("model"))
    return not meant(include, modules) or any(included_layers_can_be_converted.check(facts))


@invariant("FP0454", "`fp8` has the number formats that its options need")
def formats_fit(facts: Facts) -> Iterator[Finding]:
    recipe = facts.get("apply.fp8.recipe")
    if recipe is None:
        return
    gather, emulate, compute = facts["apply.fp8.all_gather"], facts["apply.fp8.emulate"], facts["precision.compute"]
    if gather.value and recipe.value != "tensorwise":
        yield formats_fit.at(
            f"all_gather = true needs one scale for a whole weight, and recipe = {recipe.value} has one for every row, "
            "of which a rank holds a part",
            gather,
            recipe,
            legal=(legal(facts, recipe.path, ["tensorwise"]), legal(facts, gather.path, [False])),
        )
    if compute.value != "bf16" and not (compute.value in EMULATED and emulate.value):
        yield formats_fit.at(
            f"fp8 rounds from precision.compute = {compute.value}, and products take bf16, or "
            f"{listing(EMULATED, ' or ')} where emulated",
            compute,
            _fp8(facts),
            emulate,
            legal=(
                legal(facts, compute.path, ["bf16", *EMULATED]),
                legal(facts, emulate.path, [True]),
            ),
        )


@lint("fp8-small-layers", "layers that `fp8.include` names are large enough to gain")
def included_layers_are_large(facts: Facts) -> Iterator[Finding]:
    include, recipe = facts.get("apply.fp8.include"), facts.get("apply.fp8.recipe")
    if include is None or recipe is None or include.value == "all":
        return
    is_small = IS_SMALL[recipe.value]
    small = [
        layer for layer in facts.results("float8").layers if layer.why is None and is_small(layer.inputs, layer.outputs)
    ]
    if not small:
        return
    first, *others = _kinds(small)
    yield included_layers_are_large.at(
        f"float8 most likely slows down what is this small: {first}",
        include,
        recipe,
        help=("leave them out, or measure",),
        notes=others[:MOST_SHOWN],
    )


def _fp8(facts: Facts) -> Label:
    return Label(facts.place("apply.fp8", "apply"), "fp8")


def _listed(kinds: Counter[str]) -> list[str]:
    """The layers that a message is about, if they are few kinds."""
    names = [name if number == 1 else f"{name} ({number:,})" for name, number in kinds.items()]
    rest = len(names) - MOST_SHOWN
    return [f"these are {listing(names[:MOST_SHOWN])}" + (f", and {plural(rest, 'further kind')}" if rest > 0 else "")]
