"""AMQP 1.0: values, frames and messages as bytes."""
