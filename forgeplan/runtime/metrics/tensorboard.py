"""How do the numbers of a run reach TensorBoard?"""

from __future__ import annotations

import time
from pathlib import Path

from attrs import define
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from forgeplan.runtime.metrics.records import Record
from forgeplan.runtime.registry import register
from forgeplan.spec.sink.tensorboard import TensorBoard


@define
class _Events:
    writer: EventFileWriter

    def write(self, record: Record) -> None:
        """One event with all values of the record: that costs what a single value costs."""
        group = record["kind"] if "name" not in record else f"{record['kind']}/{record['name']}"
        values = [
            Summary.Value(tag=f"{group}/{name}", simple_value=float(value))
            for name, value in record.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and name != "step"
        ]
        self.writer.add_event(Event(wall_time=time.time(), step=record["step"], summary=Summary(value=values)))

    def close(self) -> None:
        self.writer.close()


@register.sink("tensorboard", spec=TensorBoard)
def build_tensorboard(spec: TensorBoard, folder: Path, first_step: int) -> _Events:
    """Event files in `folder`. Readers forget what earlier files say about `first_step` and later ones."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = EventFileWriter(str(folder), flush_secs=10)
    if first_step > 1:
        start = SessionLog(status=SessionLog.START)
        writer.add_event(Event(wall_time=time.time(), step=first_step, session_log=start))
    return _Events(writer)
