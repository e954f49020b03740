"""Access control: identities, rules, rate limits and the audit log. Imports neither gRPC nor HTTP."""
