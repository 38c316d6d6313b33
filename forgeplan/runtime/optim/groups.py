"""Which parameters are updated alike?"""

from __future__ import annotations

from attrs import frozen
from torch import nn

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.spec.model.parameter import Parameter


@frozen
class Group:
    """Parameters by name, with the weight decay that they have in common."""

    parameters: dict[str, nn.Parameter]
    weight_decay: float


def decay_groups(
    model: nn.Module, planned: list[Parameter], weight_decay: float, decay_embeddings: bool
) -> tuple[Group, Group]:
    """(with decay, without): norms and biases never decay, the embedding only if asked; every matrix else does.

    A tied table is an embedding.
    """
    roles = {parameter.name: parameter.role for parameter in planned}
    spared = {"norm", "bias"} | (set() if decay_embeddings else {"embedding"})
    decayed: dict[str, nn.Parameter] = {}
    kept: dict[str, nn.Parameter] = {}
    for name, parameter in model.named_parameters():
        if name not in roles:
            raise InternalError(f"{name} is a parameter that the model's description does not know")
        (kept if roles[name] in spared else decayed)[name] = parameter
    return Group(decayed, weight_decay), Group(kept, 0.0)
