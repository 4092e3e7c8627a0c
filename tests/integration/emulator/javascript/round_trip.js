// Sends, receives and asks with the genuine client; prints what it saw as one line of JSON.
//
// node round_trip.js CONNECTION_STRING HUB

const { EventHubConsumerClient, EventHubProducerClient, earliestEventPosition } = require("@azure/event-hubs");

const [connectionString, hub] = process.argv.slice(2);

async function send() {
  const producer = new EventHubProducerClient(connectionString, hub);
  const batch = await producer.createBatch({ partitionKey: "key" });
  for (let index = 0; index < 10; index++) {
    batch.tryAdd({ body: { index }, properties: { index, text: "naïve" }, correlationId: `c${index}` });
  }
  await producer.sendBatch(batch);
  await producer.sendBatch([{ body: Buffer.alloc(900_000, 65) }], { partitionId: "1" });
  const properties = await producer.getEventHubProperties();
  const partition = await producer.getPartitionProperties("1");
  await producer.close();
  return { properties, partition };
}

async function receive(count) {
  const consumer = new EventHubConsumerClient("$Default", connectionString, hub);
  const events = [];
  await new Promise((resolve, reject) => {
    const subscription = consumer.subscribe(
      {
        processEvents: async (received, context) => {
          for (const event of received) {
            events.push({
              partitionId: context.partitionId,
              body: Buffer.isBuffer(event.body) ? event.body.length : event.body,
              properties: event.properties,
              correlationId: event.correlationId,
              partitionKey: event.partitionKey,
              sequenceNumber: event.sequenceNumber,
              offset: event.offset,
              lastEnqueued: context.lastEnqueuedEventProperties?.sequenceNumber,
            });
          }
          if (events.length >= count) {
            await subscription.close();
            resolve();
          }
        },
        processError: async (error) => reject(error),
      },
      { startPosition: earliestEventPosition, trackLastEnqueuedEventProperties: true, maxWaitTimeInSeconds: 1 },
    );
  });
  await consumer.close();
  return events;
}

async function failure(run) {
  try {
    await run();
    return null;
  } catch (error) {
    return error.code ?? error.name;
  }
}

async function main() {
  const asked = await send();
  const events = await receive(11);
  const retryOptions = { maxRetries: 0 };
  const wrongHub = new EventHubProducerClient(connectionString, "no-such-hub", { retryOptions });
  const wrong = new EventHubProducerClient(connectionString, hub, { retryOptions });
  const errors = {
    hub: await failure(() => wrongHub.getEventHubProperties()),
    partition: await failure(() => wrong.getPartitionProperties("99")),
    send: await failure(() => wrong.sendBatch([{ body: "x" }], { partitionId: "99" })),
  };
  await wrongHub.close();
  await wrong.close();
  console.log(JSON.stringify({ ...asked, events, errors }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
