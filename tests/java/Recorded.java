import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/** Two seconds of computing, reading, writing, waiting and renaming threads, to be recorded. With the argument
 *  "killed" it ends without the JVM's shutdown, so that the recording is left as it was last flushed. */
public class Recorded {
    static final long END = System.nanoTime() + 2_500_000_000L;
    static final Object LOCK = new Object();

    static boolean running() {
        return System.nanoTime() < END;
    }

    static long fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static void compute() {
        for (int i = 0; running(); i++) {
            Thread.currentThread().setName("task " + i % 4);
            fibonacci(27);
        }
    }

    static void hold() {
        while (running()) {
            synchronized (LOCK) {
                LockSupport.parkNanos(20_000_000L);
            }
        }
    }

    static void receive(ServerSocket server) {
        try (Socket socket = server.accept(); InputStream in = socket.getInputStream()) {
            byte[] buffer = new byte[8192];
            while (in.read(buffer) >= 0) {
                Thread.sleep(5);
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void send(int port) {
        try (Socket socket = new Socket("localhost", port); OutputStream out = socket.getOutputStream()) {
            while (running()) {
                out.write(new byte[8192]);
                Thread.sleep(20);
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void start(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        ServerSocket server = new ServerSocket(0);
        start(Recorded::compute);
        start(Recorded::hold);
        start(Recorded::hold);
        start(() -> receive(server));
        start(() -> send(server.getLocalPort()));
        Path path = Files.createTempFile("recorded", null);
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            while (running()) {
                file.seek(0);
                file.write(new byte[1 << 16]);
                file.getChannel().force(true);
                file.seek(0);
                file.read(new byte[1 << 16]);
            }
        } finally {
            Files.delete(path);
        }
        if (args[0].equals("killed")) {
            Runtime.getRuntime().halt(1);
        }
    }
}
