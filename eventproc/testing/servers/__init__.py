"""Real servers for tests: Azurite, Kafka, PostgreSQL, RabbitMQ; and a proxy that loses answers."""
