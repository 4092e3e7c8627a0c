// Handles events with the genuine EventProcessorHost, checkpoints each, and stops where it is told to.
//
// java Host CONNECTION_STRING STORAGE CONTAINER LAST PARTITIONS AFTER
//
// Ends when each of the partitions (0,1) was handled up to the sequence number LAST, and prints
// partition and sequence number of each event. A partition without a lease begins after the number
// in AFTER (0=9,1=9), or at its first event. It connects over WebSockets, because the host has no
// other way to a port that is not 5671.

import com.google.gson.Gson;
import com.microsoft.azure.eventhubs.EventData;
import com.microsoft.azure.eventhubs.EventPosition;
import com.microsoft.azure.eventhubs.TransportType;
import com.microsoft.azure.eventprocessorhost.CloseReason;
import com.microsoft.azure.eventprocessorhost.EventProcessorHost;
import com.microsoft.azure.eventprocessorhost.EventProcessorOptions;
import com.microsoft.azure.eventprocessorhost.IEventProcessor;
import com.microsoft.azure.eventprocessorhost.PartitionContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

public final class Host {
    private static final List<Object[]> HANDLED = Collections.synchronizedList(new ArrayList<>());
    private static final Set<String> OPEN = ConcurrentHashMap.newKeySet();
    private static final CountDownLatch OVER = new CountDownLatch(1);
    private static long last;

    public static final class Processor implements IEventProcessor {
        @Override
        public void onOpen(PartitionContext context) {
        }

        @Override
        public void onClose(PartitionContext context, CloseReason reason) {
        }

        @Override
        public void onEvents(PartitionContext context, Iterable<EventData> events) throws Exception {
            for (EventData event : events) {
                long number = event.getSystemProperties().getSequenceNumber();
                if (number > last) {
                    return;
                }
                HANDLED.add(new Object[] {context.getPartitionId(), number});
                context.checkpoint(event).get();
                if (number == last && OPEN.remove(context.getPartitionId()) && OPEN.isEmpty()) {
                    OVER.countDown();
                }
            }
        }

        @Override
        public void onError(PartitionContext context, Throwable error) {
            System.err.println(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        last = Long.parseLong(arguments[3]);
        OPEN.addAll(List.of(arguments[4].split(",")));
        EventProcessorHost host = EventProcessorHost.EventProcessorHostBuilder
            .newBuilder("host", "$Default")
            .useAzureStorageCheckpointLeaseManager(arguments[1], arguments[2], "")
            .useEventHubConnectionString(arguments[0])
            .setTransportType(TransportType.AMQP_WEB_SOCKETS)
            .build();
        host.getPartitionManagerOptions().setStartupScanDelayInSeconds(1);
        host.getPartitionManagerOptions().setFastScanIntervalInSeconds(1);
        EventProcessorOptions options = new EventProcessorOptions();
        options.setReceiveTimeOut(Duration.ofSeconds(1));
        Map<String, Long> after = new HashMap<>();
        for (String position : arguments[5].split(",")) {
            if (!position.isEmpty()) {
                after.put(position.split("=")[0], Long.parseLong(position.split("=")[1]));
            }
        }
        options.setInitialPositionProvider(partitionId -> after.containsKey(partitionId)
            ? EventPosition.fromSequenceNumber(after.get(partitionId), false)
            : EventPosition.fromStartOfStream());
        options.setExceptionNotification(notice -> System.err.println(notice.getException()));
        host.registerEventProcessor(Processor.class, options).get();
        OVER.await();
        host.unregisterEventProcessor().get();
        System.out.println(new Gson().toJson(HANDLED));
        System.exit(0); // The host keeps threads of its own.
    }
}
