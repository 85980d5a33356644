import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;

/**
 * ShedLock on PostgreSQL. A lock is taken for a ttl and extended; that an extension is refused is all that tells
 * of its loss. It doesn't wait: attempts are a schedule of the program's own.
 */
public final class Peer {
    /** Java reads CLOCK_MONOTONIC. Whoever started this says how far CLOCK_BOOTTIME is ahead of it. */
    private static final long AHEAD = Long.parseLong(System.getenv().getOrDefault("BOOTTIME_AHEAD_NS", "0"));

    private static final ConcurrentHashMap<String, SimpleLock> HELD = new ConcurrentHashMap<>();
    private static LockProvider provider;
    private static Duration ttl;

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 6) {
            throw new IllegalArgumentException("usage: URL NAME LEASE TTL_MS COUNT ASK_MS");
        }
        ttl = Duration.ofMillis(Long.parseLong(arguments[3]));
        int count = Integer.parseInt(arguments[4]);
        int ask = Integer.parseInt(arguments[5]);
        HikariDataSource source = connect(arguments[0]);
        // By default the holder is the host's name, and then two processes of one host extend the same lock.
        provider = new JdbcTemplateLockProvider(JdbcTemplateLockProvider.Configuration.builder()
                .withJdbcTemplate(new JdbcTemplate(source))
                .withLockedByValue(arguments[1])
                .usingDbTime()
                .build());
        ScheduledExecutorService attempts = Executors.newScheduledThreadPool(8);
        say("begin " + now());
        for (int number = 0; number < count; number++) {
            String lease = count == 1 ? arguments[2] : arguments[2] + "-" + number;
            attempts.execute(() -> attempt(attempts, lease));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            attempts.shutdownNow();
            HELD.values().forEach(SimpleLock::unlock);
        }));
        while (true) {
            long at = now();
            if (ask > 0 && HELD.containsKey(arguments[2])) {
                say("believes " + at + " " + arguments[2]);
            }
            Thread.sleep(ask > 0 ? ask : 1000);
        }
    }

    private static void attempt(ScheduledExecutorService attempts, String lease) {
        long next = ttl.toMillis() / 10;
        try {
            SimpleLock held = HELD.get(lease);
            if (held == null) {
                LockConfiguration wanted = new LockConfiguration(Instant.now(), lease, ttl, Duration.ZERO);
                Optional<SimpleLock> lock = provider.lock(wanted);
                if (lock.isPresent()) {
                    HELD.put(lease, lock.get());
                    say("led " + now() + " " + lease);
                    next = ttl.toMillis() / 3;
                }
            } else {
                Optional<SimpleLock> extended = held.extend(ttl, Duration.ZERO);
                if (extended.isPresent()) {
                    HELD.put(lease, extended.get());
                    next = ttl.toMillis() / 3;
                } else {
                    HELD.remove(lease);
                    say("lost " + now() + " " + lease);
                }
            }
        } catch (RuntimeException error) {
            // The database is away. Whether the lock is held isn't known, and ShedLock has no word for that.
            System.err.println("error: " + error.getMessage());
        }
        attempts.schedule(() -> attempt(attempts, lease), next, TimeUnit.MILLISECONDS);
    }

    private static HikariDataSource connect(String url) throws Exception {
        HikariConfig config = new HikariConfig();
        // postgres://user@host:port/database
        String[] parts = url.replace("postgres://", "").split("@", 2);
        config.setJdbcUrl("jdbc:postgresql://" + parts[1]);
        config.setUsername(parts[0]);
        config.setMaximumPoolSize(4);
        config.setMinimumIdle(1);
        config.setConnectionTimeout(2000);
        HikariDataSource source = new HikariDataSource(config);
        try (Connection connection = source.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE IF NOT EXISTS shedlock (name varchar(64) PRIMARY KEY,"
                    + " lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL)");
        }
        return source;
    }

    private static long now() {
        return System.nanoTime() + AHEAD;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
