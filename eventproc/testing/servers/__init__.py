"""Real servers for tests: Azurite, a Kafka broker, a proxy that loses packets."""
