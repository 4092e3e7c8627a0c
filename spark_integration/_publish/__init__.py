"""Publishing rows to an event hub or a Kafka topic."""
