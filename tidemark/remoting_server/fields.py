"""Names of fields that are not in RocketMQ's requests, and of credentials."""

TOKEN = "SecurityToken"  # noqa: S105 - a name; RocketMQ's clients send it with every request
REASON = "tidemarkReason"  # of a refusal: the stable reason
FACTS = "tidemarkFacts"  # of a refusal: its facts as JSON
