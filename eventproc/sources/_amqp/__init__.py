"""AMQP 1.0 messages: their values, sections and fields, decoded without a vendor's client."""
