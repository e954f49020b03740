"""Fields of refusals that RocketMQ does not have, and the field of a token."""

TOKEN = "SecurityToken"  # noqa: S105 - a name; RocketMQ's clients send it with every request
REASON = "tidemarkReason"  # of a refusal: the stable reason
SKIPPED = "tidemarkSkipped"  # of a pull: damaged records that are left out, as JSON
FACTS = "tidemarkFacts"  # of a refusal: its facts as JSON
