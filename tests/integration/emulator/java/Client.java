// Azure's Java client, on request: one command of JSON a line on standard input, one answer of JSON
// a line on standard output. ../foreign_clients.py says which commands there are.

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.eventhubs.CheckpointStore;
import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventHubBufferedProducerClient;
import com.azure.messaging.eventhubs.EventHubBufferedProducerClientBuilder;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.EventProcessorClient;
import com.azure.messaging.eventhubs.EventProcessorClientBuilder;
import com.azure.messaging.eventhubs.LoadBalancingStrategy;
import com.azure.messaging.eventhubs.checkpointstore.blob.BlobCheckpointStore;
import com.azure.messaging.eventhubs.models.Checkpoint;
import com.azure.messaging.eventhubs.models.CreateBatchOptions;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.PartitionOwnership;
import com.azure.messaging.eventhubs.models.ReceiveOptions;
import com.azure.messaging.eventhubs.models.SendOptions;
import com.azure.storage.blob.BlobContainerClientBuilder;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import reactor.core.Disposable;

public final class Client {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUTPUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final AmqpRetryOptions RETRIES =
        new AmqpRetryOptions().setMaxRetries(3).setDelay(Duration.ofMillis(100)).setTryTimeout(Duration.ofSeconds(10));

    /** One receiver: the events that came, and the error that ended it. */
    private static final class Receiver {
        final BlockingQueue<EventData> events = new LinkedBlockingQueue<>();
        volatile Throwable error;
        Disposable subscription;
    }

    private final Map<String, Receiver> receivers = new HashMap<>();
    private EventHubProducerClient producer;
    private EventHubConsumerAsyncClient consumer;
    private EventProcessorClient processor;
    private JsonNode connected;

    public static void main(String[] arguments) throws Exception {
        Client client = new Client();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                say(Map.of("answer", client.carryOut(JSON.readTree(line))));
            } catch (Exception error) {
                Map<String, Object> answer = new LinkedHashMap<>();
                answer.put("error", String.valueOf(error));
                if (error instanceof AmqpException known && known.getErrorCondition() != null) {
                    answer.put("code", known.getErrorCondition().getErrorCondition());
                }
                say(answer);
            }
        }
        client.disconnect();
        System.exit(0); // The client keeps threads of its own.
    }

    private static synchronized void say(Map<String, ?> line) throws Exception {
        OUTPUT.println(JSON.writeValueAsString(line));
    }

    private Object carryOut(JsonNode given) throws Exception {
        switch (given.get("do").asText()) {
            case "connect":
                disconnect();
                connect(given);
                return "connected";
            case "hub":
                return hub();
            case "partition":
                return partition(given.get("partition_id").asText());
            case "send":
                return send(given);
            case "send_buffered":
                return sendBuffered(given);
            case "receive":
                return receive(given);
            case "close":
                receivers.remove(given.get("receiver").asText()).subscription.dispose();
                return "closed";
            case "claim":
                return claim(given);
            case "ownerships":
                return ownerships(given);
            case "checkpoint":
                return checkpoint(given);
            case "checkpoints":
                return checkpoints(given);
            case "process":
                return process(given);
            case "stop":
                processor.stop();
                processor = null;
                return "stopped";
            default:
                throw new IllegalArgumentException("unknown command " + given);
        }
    }

    private static String textIn(JsonNode given, String name) {
        return given.hasNonNull(name) ? given.get(name).asText() : null;
    }

    private void connect(JsonNode given) {
        connected = given;
        EventHubClientBuilder builder = new EventHubClientBuilder()
            .connectionString(textIn(given, "connection"), textIn(given, "hub"))
            .consumerGroup(textIn(given, "group"))
            .retryOptions(RETRIES);
        if (given.hasNonNull("endpoint")) {
            builder.customEndpointAddress(textIn(given, "endpoint"));
        }
        if (given.hasNonNull("web_socket")) {
            builder.transportType(AmqpTransportType.AMQP_WEB_SOCKETS);
        }
        producer = builder.buildProducerClient();
        consumer = builder.buildAsyncConsumerClient();
    }

    private void disconnect() {
        if (processor != null) {
            processor.stop();
        }
        receivers.values().forEach(receiver -> receiver.subscription.dispose());
        receivers.clear();
        if (producer != null) {
            producer.close();
            consumer.close();
        }
        processor = null;
        producer = null;
    }

    private Object hub() {
        var found = producer.getEventHubProperties();
        return Map.of(
            "name", found.getName(),
            "partition_ids", found.getPartitionIds().stream().toList(),
            "created_ms", found.getCreatedAt().toEpochMilli());
    }

    private Object partition(String partitionId) {
        var found = producer.getPartitionProperties(partitionId);
        return Map.of(
            "partition_id", found.getId(),
            "is_empty", found.isEmpty(),
            "beginning_sequence_number", found.getBeginningSequenceNumber(),
            "last_sequence_number", found.getLastEnqueuedSequenceNumber(),
            "last_offset", found.getLastEnqueuedOffset());
    }

    private static List<EventData> eventsIn(JsonNode given) {
        List<EventData> events = new ArrayList<>();
        for (JsonNode one : given.get("events")) {
            EventData event = new EventData(one.get("body").asText());
            if (one.hasNonNull("properties")) {
                event.getProperties().putAll(JSON.convertValue(one.get("properties"), Map.class));
            }
            if (one.hasNonNull("message_id")) {
                event.setMessageId(textIn(one, "message_id"));
            }
            if (one.hasNonNull("correlation_id")) {
                event.setCorrelationId(textIn(one, "correlation_id"));
            }
            if (one.hasNonNull("content_type")) {
                event.setContentType(textIn(one, "content_type"));
            }
            events.add(event);
        }
        return events;
    }

    private Object send(JsonNode given) {
        CreateBatchOptions options = new CreateBatchOptions();
        if (given.hasNonNull("partition_id")) {
            options.setPartitionId(textIn(given, "partition_id"));
        }
        if (given.hasNonNull("partition_key")) {
            options.setPartitionKey(textIn(given, "partition_key"));
        }
        var batch = producer.createBatch(options);
        for (EventData event : eventsIn(given)) {
            if (!batch.tryAdd(event)) {
                throw new IllegalArgumentException("the event is too large for the batch");
            }
        }
        producer.send(batch);
        return batch.getCount();
    }

    private Object sendBuffered(JsonNode given) throws Exception {
        List<String> failures = new ArrayList<>();
        int[] sent = {0};
        EventHubBufferedProducerClient buffered = new EventHubBufferedProducerClientBuilder()
            .connectionString(textIn(connected, "connection"), textIn(connected, "hub"))
            .retryOptions(RETRIES)
            .maxWaitTime(Duration.ofMillis(50))
            .onSendBatchFailed(failed -> failures.add(String.valueOf(failed.getThrowable())))
            .onSendBatchSucceeded(done -> done.getEvents().forEach(event -> sent[0]++))
            .buildClient();
        SendOptions options = new SendOptions();
        if (given.hasNonNull("partition_key")) {
            options.setPartitionKey(textIn(given, "partition_key"));
        }
        for (EventData event : eventsIn(given)) {
            buffered.enqueueEvent(event, options);
        }
        buffered.flush();
        buffered.close();
        return Map.of("sent", sent[0], "failures", failures);
    }

    private static EventPosition positionIn(JsonNode given) {
        if (given.hasNonNull("offset")) {
            return EventPosition.fromOffsetString(textIn(given, "offset"));
        }
        if (given.hasNonNull("sequence_number")) {
            boolean isInclusive = given.path("is_inclusive").asBoolean();
            return EventPosition.fromSequenceNumber(given.get("sequence_number").asLong(), isInclusive);
        }
        if (given.hasNonNull("enqueued_ms")) {
            return EventPosition.fromEnqueuedTime(Instant.ofEpochMilli(given.get("enqueued_ms").asLong()));
        }
        return given.path("is_latest").asBoolean() ? EventPosition.latest() : EventPosition.earliest();
    }

    private Object receive(JsonNode given) throws Exception {
        Receiver receiver = receivers.get(textIn(given, "receiver"));
        if (receiver == null) {
            ReceiveOptions options = new ReceiveOptions();
            if (given.hasNonNull("owner_level")) {
                options.setOwnerLevel(given.get("owner_level").asLong());
            }
            Receiver opened = new Receiver();
            opened.subscription = consumer
                .receiveFromPartition(textIn(given, "partition_id"), positionIn(given), options)
                .subscribe(event -> opened.events.add(event.getData()), error -> opened.error = error,
                    () -> opened.error = new IllegalStateException("the receiver has ended"));
            receivers.put(textIn(given, "receiver"), opened);
            receiver = opened;
        }
        List<Object> received = new ArrayList<>();
        long endNs = System.nanoTime() + (long) (given.get("timeout_s").asDouble() * 1e9);
        while (received.size() < given.get("count").asInt() && System.nanoTime() < endNs) {
            EventData event = receiver.events.poll(10, TimeUnit.MILLISECONDS);
            if (event != null) {
                received.add(seen(event));
            } else if (receiver.error instanceof Exception error) {
                throw error;
            }
        }
        return received;
    }

    private static Map<String, Object> seen(EventData event) {
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("body", event.getBodyAsString());
        seen.put("properties", event.getProperties());
        seen.put("message_id", event.getMessageId());
        seen.put("correlation_id", event.getCorrelationId());
        seen.put("content_type", event.getContentType());
        seen.put("partition_key", event.getPartitionKey());
        seen.put("sequence_number", event.getSequenceNumber());
        seen.put("offset", event.getOffsetString());
        return seen;
    }

    private static CheckpointStore storeOf(JsonNode given) {
        return new BlobCheckpointStore(new BlobContainerClientBuilder()
            .connectionString(textIn(given, "storage"))
            .containerName(textIn(given, "container"))
            .buildAsyncClient());
    }

    private static Object claim(JsonNode given) {
        List<PartitionOwnership> claims = new ArrayList<>();
        for (JsonNode one : given.get("records")) {
            claims.add(new PartitionOwnership()
                .setFullyQualifiedNamespace(textIn(one, "namespace"))
                .setEventHubName(textIn(one, "hub"))
                .setConsumerGroup(textIn(one, "group"))
                .setPartitionId(textIn(one, "partition_id"))
                .setOwnerId(textIn(one, "owner_id"))
                .setETag(textIn(one, "etag")));
        }
        return recordsOf(storeOf(given).claimOwnership(claims).collectList().block());
    }

    private static Object ownerships(JsonNode given) {
        return recordsOf(storeOf(given)
            .listOwnership(textIn(given, "namespace"), textIn(given, "hub"), textIn(given, "group"))
            .collectList().block());
    }

    private static Object recordsOf(List<PartitionOwnership> ownerships) {
        List<Object> records = new ArrayList<>();
        for (PartitionOwnership one : ownerships) {
            Map<String, Object> stored = new LinkedHashMap<>();
            stored.put("namespace", one.getFullyQualifiedNamespace());
            stored.put("hub", one.getEventHubName());
            stored.put("group", one.getConsumerGroup());
            stored.put("partition_id", one.getPartitionId());
            stored.put("owner_id", one.getOwnerId());
            stored.put("etag", one.getETag());
            records.add(stored);
        }
        return records;
    }

    private static Object checkpoint(JsonNode given) {
        for (JsonNode one : given.get("records")) {
            Checkpoint checkpoint = new Checkpoint()
                .setFullyQualifiedNamespace(textIn(one, "namespace"))
                .setEventHubName(textIn(one, "hub"))
                .setConsumerGroup(textIn(one, "group"))
                .setPartitionId(textIn(one, "partition_id"))
                .setOffsetString(textIn(one, "offset"));
            if (one.hasNonNull("sequence_number")) {
                checkpoint.setSequenceNumber(one.get("sequence_number").asLong());
            }
            storeOf(given).updateCheckpoint(checkpoint).block();
        }
        return given.get("records").size();
    }

    private static Object checkpoints(JsonNode given) {
        List<Object> records = new ArrayList<>();
        for (Checkpoint one : storeOf(given)
            .listCheckpoints(textIn(given, "namespace"), textIn(given, "hub"), textIn(given, "group"))
            .toIterable()) {
            Map<String, Object> stored = new LinkedHashMap<>();
            stored.put("namespace", one.getFullyQualifiedNamespace());
            stored.put("hub", one.getEventHubName());
            stored.put("group", one.getConsumerGroup());
            stored.put("partition_id", one.getPartitionId());
            stored.put("offset", one.getOffsetString());
            stored.put("sequence_number", one.getSequenceNumber());
            records.add(stored);
        }
        return records;
    }

    /** Starts a processor that checkpoints after each batch; without an interval it has the SDK's defaults. */
    private Object process(JsonNode given) {
        long last = given.path("last").asLong(Long.MAX_VALUE);
        EventProcessorClientBuilder builder = new EventProcessorClientBuilder()
            .connectionString(textIn(connected, "connection"), textIn(connected, "hub"))
            .consumerGroup(textIn(connected, "group"))
            .checkpointStore(storeOf(given))
            .initialPartitionEventPosition(partitionId -> EventPosition.earliest())
            .processPartitionInitialization(started -> report("opened", started.getPartitionContext().getPartitionId()))
            .processPartitionClose(closed -> report("closed", closed.getPartitionContext().getPartitionId()))
            .processError(failed -> report("failed", String.valueOf(failed.getThrowable())))
            .processEventBatch(batch -> {
                List<EventData> events = batch.getEvents();
                if (!events.isEmpty() && events.get(0).getSequenceNumber() <= last) {
                    String partitionId = batch.getPartitionContext().getPartitionId();
                    events.forEach(event -> reportEvent("handled", partitionId, event));
                    batch.updateCheckpoint();
                    reportEvent("checkpointed", partitionId, events.get(events.size() - 1));
                }
            }, given.hasNonNull("last") ? 1 : 100, Duration.ofMillis(200));
        if (given.path("interval_s").asDouble() > 0) {
            builder.loadBalancingStrategy(LoadBalancingStrategy.GREEDY);
            builder.loadBalancingUpdateInterval(Duration.ofMillis((long) (given.get("interval_s").asDouble() * 1000)));
            builder.partitionOwnershipExpirationInterval(
                Duration.ofMillis((long) (given.get("expiration_s").asDouble() * 1000)));
        }
        processor = builder.buildEventProcessorClient();
        processor.start();
        return "processing";
    }

    private static void report(String what, String value) {
        try {
            say(Map.of(what, value));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void reportEvent(String what, String partitionId, EventData event) {
        try {
            say(Map.of(what, partitionId, "sequence_number", event.getSequenceNumber()));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
