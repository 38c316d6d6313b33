"""Where do metrics go besides the JSON lines?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec.registry import component


@component("sink", "tensorboard")
@frozen
class TensorBoard:
    """Event files for TensorBoard in the run directory's `events/`."""
