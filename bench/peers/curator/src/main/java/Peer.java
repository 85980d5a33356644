import java.util.ArrayList;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.retry.RetryForever;

/** Curator's LeaderLatch on ZooKeeper. Its answer to "do I lead?" is hasLeadership(). */
public final class Peer {
    /** Java reads CLOCK_MONOTONIC. Whoever started this says how far CLOCK_BOOTTIME is ahead of it. */
    private static final long AHEAD = Long.parseLong(System.getenv().getOrDefault("BOOTTIME_AHEAD_NS", "0"));

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 6) {
            throw new IllegalArgumentException("usage: URL NAME LEASE TTL_MS COUNT ASK_MS");
        }
        String hosts = arguments[0].replace("zookeeper://", "");
        int ttl = Integer.parseInt(arguments[3]);
        int count = Integer.parseInt(arguments[4]);
        int ask = Integer.parseInt(arguments[5]);
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(hosts, ttl, 5000, new RetryForever(200));
        client.start();
        client.blockUntilConnected();
        say("begin " + now());
        List<LeaderLatch> latches = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            String lease = count == 1 ? arguments[2] : arguments[2] + "-" + number;
            LeaderLatch latch = new LeaderLatch(client, "/" + lease, arguments[1]);
            latch.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {
                    say("led " + now() + " " + lease);
                }

                @Override
                public void notLeader() {
                    say("lost " + now() + " " + lease);
                }
            });
            latch.start();
            latches.add(latch);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            for (LeaderLatch latch : latches) {
                try {
                    latch.close();
                } catch (Exception error) {
                    System.err.println("error: " + error);
                }
            }
            client.close();
        }));
        while (true) {
            long at = now();
            if (ask > 0 && latches.get(0).hasLeadership()) {
                say("believes " + at + " " + arguments[2]);
            }
            Thread.sleep(ask > 0 ? ask : 1000);
        }
    }

    private static long now() {
        return System.nanoTime() + AHEAD;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
