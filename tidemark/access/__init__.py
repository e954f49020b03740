"""Who may do what: identities, rules, rates, and the trail of both. Knows neither gRPC nor HTTP."""
