"""From a foreign configuration to a checked plan: the importer and the compiler together."""

from __future__ import annotations

import attrs
from attrs import frozen

from forgeplan.analysis import Analysis, analyse
from forgeplan.importer.convert import Imported, convert
from forgeplan.importer.rules import Options

TOO_LARGE = "FP0901"
"""The states of the model do not fit into the devices."""
_MOST_NODES = 1024


@frozen
class Checked:
    """A plan that was made of a configuration, and what the compiler finds in it."""

    imported: Imported
    analysis: Analysis | None
    """None where no plan could be made."""

    @property
    def facts(self) -> dict[str, int] | None:
        """Parameters, devices, and tokens of a step; None where there is no plan, or one with errors."""
        analysis = self.analysis
        plan = analysis.jobs[0].plan if analysis and analysis.jobs and not analysis.errors else None
        if plan is None:
            return None
        mesh, batch = plan.mesh, plan.batch
        return {
            "params": sum(parameter.numel for parameter in plan.model.parameters()),
            "devices": plan.cluster.nodes * plan.cluster.devices_per_node,
            "tokens_per_step": batch.accumulation * batch.micro * batch.length * mesh.dp_replicate * mesh.dp_shard,
        }


def import_plan(text: str, path: str, options: Options, format: str | None = None) -> Checked:
    """Convert and check. Where nothing says how many machines there are, as many are taken as the model needs.

    `path` names the configuration. Raises UsageError as `convert` does.
    """
    found = _checked(text, path, options, format)
    while found.analysis is not None and found.imported.is_open and options.least_nodes < _MOST_NODES:
        if all(error.code != TOO_LARGE for error in found.analysis.errors):
            break
        options = attrs.evolve(options, least_nodes=2 * options.least_nodes)
        found = _checked(text, path, options, format)
    return found


def _checked(text: str, path: str, options: Options, format: str | None) -> Checked:
    made = convert(text, path, options, format)
    return Checked(made, analyse(f"{made.report.plan}.forge", text=made.text) if made.text is not None else None)
