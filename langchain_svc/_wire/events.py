"""What the bytes of an answer become on their way to a turn of a chat: typed events.

A stream brings them read by read, and a whole answer all at once. Another kind of content than
text, such as the pieces of a native tool call, would be one more class here: `read_object` reads
it, `StreamState.add_object` and `EventParser` pass it on in its place among the texts, and a turn
decides what it becomes.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Text:
    """A piece of the answer's text."""

    text: str


@dataclass(slots=True)
class Metadata:
    """What the service says of the answer as a whole. It may say so again: the last one counts."""

    model: str | None = None
    id: str | None = None
    created: int | None = None
    timestamp: str | None = None


@dataclass(slots=True)
class Usage:
    """The tokens so far, as running totals: the last one counts.

    Their names are those of the v1 API; some services only send `{"total_tokens": n}`.
    """

    counts: dict[str, int]


@dataclass(slots=True)
class End:
    """The answer is over, and why (its finish_reason). Its usage may still follow."""

    reason: str


Event = Text | Metadata | Usage | End


@dataclass(kw_only=True)
class About:
    """What an answer, or a piece of one, says beside its text."""

    metadata: Metadata = field(default_factory=Metadata)
    finish_reason: str | None = None
    usage: dict[str, int] | None = None

    def note(self, event: Metadata | Usage | End) -> None:
        """Keep what an event of a stream says."""
        if isinstance(event, Metadata):
            self.metadata = event
        elif isinstance(event, Usage):
            self.usage = event.counts
        else:
            self.finish_reason = event.reason
