"""What answers of the Kafka client mean for a publish, with a mock of the client."""

from datetime import timedelta

import pytest
from confluent_kafka import KafkaError, KafkaException

from eventproc.errors import ConfigurationError, SourceUnavailableError
from eventproc.models import OutgoingEvent
from eventproc.sources.kafka import KafkaPublisher, _client, _publisher

SOON = timedelta(seconds=0.1)


class MockProducer:
    """Acknowledges the first message at once, and the second when the third is sent."""

    last_error = None

    def __init__(self, address, outcome):
        self.outcome, self.numbers = outcome, []
        self.queue = []

    def check(self, timeout_s):
        pass

    def send(self, number, *message):
        self.numbers.append(number)
        self.queue.append(number)
        due = {1: [0], 3: [1]}.get(len(self.numbers), [])
        for index in due:
            if self.numbers[index] in self.queue:
                self.queue.remove(self.numbers[index])
            self.outcome(self.numbers[index], None, "")
        return True

    def wait(self, timeout_s):
        pass

    def give_up(self):
        self.queue.clear()


async def test_an_acknowledgement_that_comes_late_does_not_count_for_the_next_publish(monkeypatch):
    """Else messages would seem stored that nobody has acknowledged."""
    monkeypatch.setattr(_publisher, "Producer", MockProducer)
    async with KafkaPublisher("localhost:9092", topic="orders") as publisher:
        with pytest.raises(SourceUnavailableError, match="1 of 2 messages"):
            await publisher.publish(2 * [OutgoingEvent(body=b"1")], patience=SOON)
        with pytest.raises(SourceUnavailableError, match="1 of 1 messages"):
            await publisher.publish([OutgoingEvent(body=b"2")], patience=SOON)


async def test_messages_of_a_publish_that_failed_are_not_sent_later(monkeypatch):
    """The client goes on with what is queued, and the caller publishes the same again."""
    made: list[MockProducer] = []

    def make(address, outcome):
        made.append(MockProducer(address, outcome))
        return made[-1]

    monkeypatch.setattr(_publisher, "Producer", make)
    async with KafkaPublisher("localhost:9092", topic="orders") as publisher:
        with pytest.raises(SourceUnavailableError, match="1 of 2 messages"):
            await publisher.publish(2 * [OutgoingEvent(body=b"1")], patience=SOON)

        assert [producer.queue for producer in made] == [[]]


class FakeRefusedClient:
    """Replaces the client of Kafka where a broker refuses its password."""

    def __init__(self, settings):
        self._report = settings["error_cb"]

    def list_topics(self, topic, timeout):
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no answer"))

    def poll(self, timeout):
        self._report(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
        self._report(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))


async def test_a_refused_credential_is_no_outage(monkeypatch):
    """The client reports that all brokers are down, too, and does so last."""
    monkeypatch.setattr(_client, "KafkaProducer", FakeRefusedClient)
    monkeypatch.setattr(_publisher, "CHECK_MAX_S", 0.1)
    with pytest.raises(ConfigurationError, match="wrong password"):
        await KafkaPublisher("localhost:9092", topic="orders").open()
