import java.io.*;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.nio.file.attribute.*;
import java.security.*;
import java.text.*;
import java.time.*;
import java.time.format.DateTimeFormatter;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.*;
import java.util.zip.*;

/**
 * Real calls of the JDK, Netty, Hadoop, Parquet, commons-io, commons-compress, Kryo, okio, okhttp, Lucene and
 * HttpComponents, measured for jvm.py: java -cp … Measure FOLDER PEER PORTS RUNS ONLY [NUMBERS]. It prints one JSON
 * object a line and asks on standard input for emptied caches (cool) and a synced file system (sync), since both are no
 * work of the call's.
 */
public final class Measure {
    interface Call { Object run() throws Exception; }
    interface Workload { void run(Place place) throws Exception; }
    record Case(String library, String file, String name, Workload workload) { }

    static final int MIB = 1 << 20, BIG = 32 * MIB, MANY = 300;
    /** By default a folder for each file: a file system reads a folder's inodes ahead, so of neighbours only one is cold. */
    static final int FOLDERS = Integer.getInteger("folders", MANY);
    static final List<Case> CASES = new ArrayList<>();
    static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile Object sink;

    /** An empty folder on the disk, the peers, and the clock. */
    static final class Place {
        final Path folder;
        final String peer;
        final Map<String, Integer> ports;
        final int number, run;

        Place(Path folder, String peer, Map<String, Integer> ports, int number, int run) {
            this.folder = folder;
            this.peer = peer;
            this.ports = ports;
            this.number = number;
            this.run = run;
        }

        Path path(String name) { return folder.resolve(name); }
        InetSocketAddress address(String name) { return new InetSocketAddress(peer, ports.get(name)); }
        String url(String path) { return "http://" + peer + ":" + ports.get("http") + "/" + path; }

        void cool() throws IOException {
            String answer = ask("cool");
            if (!answer.equals("ok")) {
                System.gc();  // a mapped file keeps the file system from being unmounted until its buffer is collected
                answer = ask("cool");
            }
            if (!answer.equals("ok")) {
                throw new IOException(answer);
            }
        }

        /** Writes out what preparing left, where the call itself writes nothing or little. */
        void settle() throws IOException { ask("sync"); }

        /** One run between two marks. */
        void time(Call call) throws Exception {
            try (RandomAccessFile schedule = new RandomAccessFile("/proc/thread-self/schedstat", "r")) {
                long queued = queued(schedule);
                mark("begin");
                Instant begin = Instant.now();
                long cpu = THREADS.getCurrentThreadCpuTime(), wall = System.nanoTime();
                sink = call.run();
                wall = System.nanoTime() - wall;
                cpu = THREADS.getCurrentThreadCpuTime() - cpu;
                Instant end = Instant.now();
                mark("end");
                queued = queued(schedule) - queued;
                sink = null;
                long deferred = Long.parseLong(ask("sync"));
                OUT.printf(Locale.ROOT, "{\"result\": %d, \"run\": %d, \"wall_ms\": %.6f, \"cpu_ms\": %.6f, \"queued_ms\": %.6f, "
                    + "\"deferred_ms\": %.6f, \"begin_ns\": %d, \"end_ns\": %d, \"thread\": %s}%n", number, run, wall / 1e6, cpu / 1e6,
                    queued / 1e6, deferred / 1e6, nanos(begin), nanos(end), quoted(Thread.currentThread().getName()));
            }
        }

        private void mark(String what) {
            Files.exists(Path.of("/crystalperf-measure/" + number + "/" + run + "/" + what));
        }

        private static long queued(RandomAccessFile schedule) throws IOException {
            schedule.seek(0);
            return Long.parseLong(schedule.readLine().split(" ")[1]);
        }

        private static long nanos(Instant at) { return at.getEpochSecond() * 1_000_000_000L + at.getNano(); }
    }

    static String ask(String what) throws IOException {
        OUT.println("{\"ask\": \"" + what + "\"}");
        String answer = ANSWERS.readLine();
        if (answer == null) {
            Runtime.getRuntime().halt(1);  // the parent is gone
        }
        return answer;
    }

    // --- ways to say a workload -----------------------------------------------------------------------------------

    static void add(String library, String file, String name, Workload workload) {
        CASES.add(new Case(library, file, name, workload));
    }

    static void jdk(String file, String name, Workload workload) {
        add("jdk-java.base", "java.base/" + file + ".java", name, workload);
    }

    static Workload cpu(int times, Call call) {
        return place -> place.time(() -> {
            Object last = null;
            for (int i = 0; i < times; i++) {
                last = call.run();
            }
            return last;
        });
    }

    interface Make<T> { T make(Path folder) throws Exception; }
    interface Use<T> { Object use(T made) throws Exception; }
    interface Do<T> { void use(T made) throws Exception; }

    /** What `make` put into a folder, with empty caches. */
    static <T> Workload disk(Make<T> make, Use<T> use) {
        return place -> {
            T made = make.make(place.folder);
            place.cool();
            place.time(() -> use.use(made));
        };
    }

    /** The same for each of many small files. */
    static Workload each(Do<Path> use) { return eachOf(Measure::many, use); }

    static Workload eachOf(Make<List<Path>> make, Do<Path> use) {
        return disk(make, paths -> {
            for (Path path : paths) {
                use.use(path);
            }
            return null;
        });
    }

    static byte[] noise(int count) {
        byte[] bytes = new byte[count];
        new Random(1).nextBytes(bytes);
        return bytes;
    }

    static byte[] prose(int count) {
        Random chance = new Random(2);
        byte[] bytes = new byte[count];
        String words = "the of and to in is that for it as was with be by on not he his but at are this have from or had ";
        for (int i = 0; i < count; ) {
            int start = chance.nextInt(words.length() - 12);
            for (int j = 0; j < 8 && i < count; j++) {
                bytes[i++] = (byte) (chance.nextInt(40) == 0 ? '\n' : words.charAt(start + j));
            }
        }
        return bytes;
    }

    static Path big(Path folder) throws IOException { return Files.write(folder.resolve("a"), noise(BIG)); }

    static Path text(Path folder) throws IOException { return Files.write(folder.resolve("a"), prose(BIG)); }

    static List<Path> many(Path folder) throws IOException {
        List<Path> paths = new ArrayList<>();
        byte[] data = noise(3000);
        for (int i = 0; i < MANY; i++) {
            Path path = folder.resolve("d" + i % FOLDERS).resolve("file" + i + ".txt");
            Files.createDirectories(path.getParent());
            paths.add(Files.write(path, data));
        }
        return paths;
    }

    static List<Path> fresh(Path folder) {
        return IntStream.range(0, MANY).mapToObj(i -> folder.resolve("new" + i)).collect(Collectors.toList());
    }

    static Path folderOfMany(Path folder) throws IOException {
        many(folder);
        return folder;
    }

    static List<Path> folders(Path folder) throws IOException {
        many(folder);
        return IntStream.range(0, FOLDERS).mapToObj(i -> folder.resolve("d" + i)).collect(Collectors.toList());
    }

    static List<Path> copies(Path folder, String suffix, byte[] data, int count) throws IOException {
        List<Path> paths = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            paths.add(Files.write(folder.resolve(i + suffix), data));
        }
        return paths;
    }

    static byte[] zip(int entries, byte[] data, int level) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream out = new ZipOutputStream(bytes)) {
            out.setLevel(level);
            for (int i = 0; i < entries; i++) {
                out.putNextEntry(new ZipEntry("m" + i));
                out.write(data);
            }
        }
        return bytes.toByteArray();
    }

    static byte[] gzip(byte[] data) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
            out.write(data);
        }
        return bytes.toByteArray();
    }

    static Socket lines(Place place, String text) throws IOException {
        Socket socket = new Socket();
        socket.connect(place.address("lines"));
        socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
        return socket;
    }

    static SocketChannel channel(Place place, String text) throws IOException {
        SocketChannel channel = SocketChannel.open(place.address("lines"));
        channel.write(ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII)));
        return channel;
    }

    /** Asks a peer to connect to a port here. */
    static Socket dialled(Place place, int port) throws IOException {
        Socket control = new Socket();
        control.connect(place.address("dial"));
        control.getOutputStream().write(("DIAL " + port + " hello|\n").getBytes(StandardCharsets.US_ASCII));
        return control;
    }

    static long drain(InputStream in) throws IOException {
        byte[] buffer = new byte[65536];
        long all = 0;
        for (int count; (count = in.read(buffer)) >= 0; ) {
            all += count;
        }
        return all;
    }

    static long drainSingle(InputStream in, int count) throws IOException {
        long all = 0;
        for (int i = 0; i < count; i++) {
            all += in.read();
        }
        return all;
    }

    // --- the JDK: files ---------------------------------------------------------------------------------------------

    static final byte[] DATA = noise(BIG);
    static final byte[] PROSE = prose(4 * MIB);

    static void jdkFiles() {
        String files = "java/nio/file/Files";
        jdk(files, "Files.readAllBytes", disk(Measure::big, Files::readAllBytes));
        jdk(files, "Files.readString(Path,Charset)", disk(Measure::text, p -> Files.readString(p, StandardCharsets.ISO_8859_1)));
        jdk(files, "Files.readAllLines(Path,Charset)", disk(Measure::text, p -> Files.readAllLines(p, StandardCharsets.ISO_8859_1)));
        jdk(files, "Files.write(Path,byte[],OpenOption...)", disk(d -> d.resolve("n"), p -> Files.write(p, DATA)));
        jdk(files, "Files.writeString(Path,CharSequence,Charset,OpenOption...)", disk(d -> d.resolve("n"), p -> Files.writeString(p, "x".repeat(BIG), StandardCharsets.ISO_8859_1)));
        jdk(files, "Files.copy(Path,Path,CopyOption...)", disk(Measure::big, p -> Files.copy(p, p.resolveSibling("n"))));
        jdk(files, "Files.copy(InputStream,Path,CopyOption...)", disk(d -> d.resolve("n"), p -> Files.copy(new ByteArrayInputStream(DATA), p)));
        jdk(files, "Files.copy(Path,OutputStream)", disk(Measure::big, p -> Files.copy(p, OutputStream.nullOutputStream())));
        jdk(files, "Files.move", each(p -> Files.move(p, p.resolveSibling(p.getFileName() + ".n"))));
        jdk(files, "Files.delete", each(Files::delete));
        jdk(files, "Files.deleteIfExists", each(Files::deleteIfExists));
        jdk(files, "Files.createFile", eachOf(Measure::fresh, Files::createFile));
        jdk(files, "Files.createDirectory", eachOf(Measure::fresh, Files::createDirectory));
        jdk(files, "Files.createDirectories", eachOf(Measure::fresh, p -> Files.createDirectories(p.resolve("b"))));
        jdk(files, "Files.createTempFile(Path,String,String,FileAttribute...)", eachOf(Measure::fresh, p -> Files.createTempFile(p.getParent(), "a", "b")));
        jdk(files, "Files.createSymbolicLink", each(p -> Files.createSymbolicLink(p.resolveSibling(p.getFileName() + ".s"), p)));
        jdk(files, "Files.createLink", each(p -> Files.createLink(p.resolveSibling(p.getFileName() + ".s"), p)));
        jdk(files, "Files.exists", each(Files::exists));
        jdk(files, "Files.notExists", each(Files::notExists));
        jdk(files, "Files.isDirectory", each(Files::isDirectory));
        jdk(files, "Files.isRegularFile", each(Files::isRegularFile));
        jdk(files, "Files.isReadable", each(Files::isReadable));
        jdk(files, "Files.size", each(Files::size));
        jdk(files, "Files.getLastModifiedTime", each(Files::getLastModifiedTime));
        jdk(files, "Files.setLastModifiedTime", each(p -> Files.setLastModifiedTime(p, FileTime.fromMillis(5))));
        jdk(files, "Files.readAttributes(Path,Class,LinkOption...)", each(p -> Files.readAttributes(p, BasicFileAttributes.class)));
        jdk(files, "Files.getPosixFilePermissions", each(Files::getPosixFilePermissions));
        jdk(files, "Files.isSameFile", each(p -> Files.isSameFile(p, p.getParent())));
        jdk(files, "Files.mismatch", disk(d -> { Files.write(d.resolve("b"), DATA); return big(d); }, p -> Files.mismatch(p, p.resolveSibling("b"))));
        jdk(files, "Files.list", eachOf(Measure::folders, p -> { try (Stream<Path> its = Files.list(p)) { its.count(); } }));
        jdk(files, "Files.walkFileTree(Path,FileVisitor)", disk(Measure::folderOfMany, p -> Files.walkFileTree(p, new SimpleFileVisitor<Path>() { })));
        jdk(files, "Files.walk(Path,FileVisitOption...)", disk(Measure::folderOfMany, p -> { try (Stream<Path> its = Files.walk(p)) { return its.count(); } }));
        jdk(files, "Files.find", disk(Measure::folderOfMany, p -> { try (Stream<Path> its = Files.find(p, 5, (a, b) -> b.isRegularFile())) { return its.count(); } }));
        jdk(files, "Files.newDirectoryStream(Path)", eachOf(Measure::folders, p -> { try (DirectoryStream<Path> its = Files.newDirectoryStream(p)) { its.forEach(a -> { }); } }));
        jdk(files, "Files.newByteChannel(Path,OpenOption...)", each(p -> Files.newByteChannel(p).close()));
        jdk(files, "Files.newInputStream", each(p -> Files.newInputStream(p).close()));
        jdk(files, "Files.newOutputStream", eachOf(Measure::fresh, p -> Files.newOutputStream(p).close()));
        jdk(files, "Files.newBufferedReader(Path,Charset)", each(p -> Files.newBufferedReader(p, StandardCharsets.UTF_8).close()));
        jdk(files, "Files.lines(Path,Charset)", disk(Measure::text, p -> { try (Stream<String> its = Files.lines(p, StandardCharsets.ISO_8859_1)) { return its.count(); } }));

        String file = "java/io/File";
        jdk(file, "File.exists", each(p -> p.toFile().exists()));
        jdk(file, "File.isFile", each(p -> p.toFile().isFile()));
        jdk(file, "File.isDirectory", each(p -> p.toFile().isDirectory()));
        jdk(file, "File.length", each(p -> p.toFile().length()));
        jdk(file, "File.lastModified", each(p -> p.toFile().lastModified()));
        jdk(file, "File.setLastModified", each(p -> p.toFile().setLastModified(5000)));
        jdk(file, "File.delete", each(p -> p.toFile().delete()));
        jdk(file, "File.createNewFile", eachOf(Measure::fresh, p -> p.toFile().createNewFile()));
        jdk(file, "File.mkdir", eachOf(Measure::fresh, p -> p.toFile().mkdir()));
        jdk(file, "File.mkdirs", eachOf(Measure::fresh, p -> p.resolve("b").toFile().mkdirs()));
        jdk(file, "File.listFiles()", eachOf(Measure::folders, p -> p.toFile().listFiles()));
        jdk(file, "File.list()", eachOf(Measure::folders, p -> p.toFile().list()));
        jdk(file, "File.renameTo", each(p -> p.toFile().renameTo(new File(p + ".n"))));
        jdk(file, "File.getCanonicalPath", each(p -> p.toFile().getCanonicalPath()));
        jdk(file, "File.createTempFile(String,String,File)", eachOf(Measure::fresh, p -> File.createTempFile("abc", "d", p.getParent().toFile())));
        jdk(file, "File.getParent", cpu(300000, () -> new File("/a/b/c").getParent()));
        jdk(file, "File.toURI", cpu(2000, () -> new File("/a/b/c").toURI()));

        jdk("java/io/FileInputStream", "FileInputStream.<init>(File)", each(p -> new FileInputStream(p.toFile()).close()));
        jdk("java/io/FileInputStream", "FileInputStream.read(byte[],int,int)", disk(Measure::big, p -> { try (InputStream in = new FileInputStream(p.toFile())) { byte[] b = new byte[65536]; long all = 0; for (int n; (n = in.read(b, 0, b.length)) >= 0; ) { all += n; } return all; } }));
        jdk("java/io/FileInputStream", "FileInputStream.readAllBytes", disk(Measure::big, p -> { try (InputStream in = new FileInputStream(p.toFile())) { return in.readAllBytes(); } }));
        jdk("java/io/FileInputStream", "FileInputStream.read()", each(p -> { try (InputStream in = new FileInputStream(p.toFile())) { in.read(); } }));
        jdk("java/io/FileOutputStream", "FileOutputStream.write(byte[],int,int)", disk(d -> d.resolve("n"), p -> { try (OutputStream out = new FileOutputStream(p.toFile())) { out.write(DATA, 0, BIG); } return null; }));
        jdk("java/io/FileOutputStream", "FileOutputStream.<init>(File,boolean)", eachOf(Measure::fresh, p -> new FileOutputStream(p.toFile(), false).close()));
        jdk("java/io/RandomAccessFile", "RandomAccessFile.readFully(byte[],int,int)", disk(Measure::big, p -> { try (RandomAccessFile f = new RandomAccessFile(p.toFile(), "r")) { byte[] b = new byte[BIG]; f.readFully(b, 0, BIG); return b; } }));
        jdk("java/io/RandomAccessFile", "RandomAccessFile.write(byte[],int,int)", disk(d -> d.resolve("n"), p -> { try (RandomAccessFile f = new RandomAccessFile(p.toFile(), "rw")) { f.write(DATA, 0, BIG); } return null; }));
        jdk("java/io/RandomAccessFile", "RandomAccessFile.readLong", each(p -> { try (RandomAccessFile f = new RandomAccessFile(p.toFile(), "r")) { for (int i = 0; i < 20; i++) { f.readLong(); } } }));
        jdk("java/io/RandomAccessFile", "RandomAccessFile.readLine", each(p -> { try (RandomAccessFile f = new RandomAccessFile(p.toFile(), "r")) { f.readLine(); } }));
        jdk("java/io/BufferedInputStream", "BufferedInputStream.read(byte[],int,int)", disk(Measure::big, p -> { try (InputStream in = new BufferedInputStream(new FileInputStream(p.toFile()))) { byte[] b = new byte[4096]; while (in.read(b, 0, 4096) >= 0) { } } return null; }));
        jdk("java/io/BufferedInputStream", "BufferedInputStream.read()", disk(Measure::big, p -> { try (InputStream in = new BufferedInputStream(new FileInputStream(p.toFile()))) { return drainSingle(in, BIG); } }));
        jdk("java/io/BufferedOutputStream", "BufferedOutputStream.write(byte[],int,int)", disk(d -> d.resolve("n"), p -> { try (OutputStream out = new BufferedOutputStream(new FileOutputStream(p.toFile()))) { for (int i = 0; i < BIG; i += 4096) { out.write(DATA, i, 4096); } } return null; }));
        jdk("java/io/BufferedReader", "BufferedReader.readLine()", disk(Measure::text, p -> { try (BufferedReader in = Files.newBufferedReader(p)) { while (in.readLine() != null) { } } return null; }));
        jdk("java/io/BufferedWriter", "BufferedWriter.write(String,int,int)", disk(d -> d.resolve("n"), p -> { try (BufferedWriter out = Files.newBufferedWriter(p)) { for (int i = 0; i < 300000; i++) { out.write("a line of some text, of a hundred bytes or so, that is written many times, line by line, to a file\n", 0, 99); } } return null; }));
        jdk("java/io/DataInputStream", "DataInputStream.readInt", disk(Measure::big, p -> { try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(p.toFile())))) { int x = 0; for (int i = 0; i < BIG / 4; i++) { x += in.readInt(); } return x; } }));
        jdk("java/io/DataOutputStream", "DataOutputStream.writeLong", cpu(20, () -> { DataOutputStream out = new DataOutputStream(new ByteArrayOutputStream()); for (int i = 0; i < 20000; i++) { out.writeLong(i); } return out; }));
        jdk("java/io/ByteArrayOutputStream", "ByteArrayOutputStream.write(byte[],int,int)", cpu(20, () -> { ByteArrayOutputStream out = new ByteArrayOutputStream(); for (int i = 0; i < 2000; i++) { out.write(PROSE, i, 500); } return out; }));
        jdk("java/io/ObjectOutputStream", "ObjectOutputStream.writeObject", cpu(20, () -> { ObjectOutputStream out = new ObjectOutputStream(new ByteArrayOutputStream()); out.writeObject(new ArrayList<>(Arrays.asList(1, "a", 2.0, List.of(1, 2)))); return out; }));
        jdk("java/util/Scanner", "Scanner.nextLine", cpu(1, () -> { Scanner its = new Scanner(new String(PROSE, 0, 300000, StandardCharsets.US_ASCII)); while (its.hasNextLine()) { its.nextLine(); } return its; }));
        jdk("java/util/Properties", "Properties.load(InputStream)", disk(d -> copies(d, ".p", "a=b\nc=d\n".getBytes(), MANY), paths -> { Properties its = new Properties(); for (Path p : paths) { try (InputStream in = new FileInputStream(p.toFile())) { its.load(in); } } return its; }));

        String channel = "sun/nio/ch/FileChannelImpl";
        jdk(channel, "FileChannelImpl.read(ByteBuffer)", disk(Measure::big, p -> { try (FileChannel c = FileChannel.open(p)) { ByteBuffer b = ByteBuffer.allocateDirect(65536); while (c.read(b) >= 0) { b.clear(); } } return null; }));
        jdk(channel, "FileChannelImpl.write(ByteBuffer)", disk(d -> d.resolve("n"), p -> { try (FileChannel c = FileChannel.open(p, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) { return c.write(ByteBuffer.wrap(DATA)); } }));
        jdk(channel, "FileChannelImpl.force", eachOf(d -> copies(d, ".f", noise(5000), 20), p -> { try (FileChannel c = FileChannel.open(p, StandardOpenOption.WRITE)) { c.write(ByteBuffer.wrap(DATA, 0, 5000)); c.force(true); } }));
        jdk(channel, "FileChannelImpl.transferTo", disk(Measure::big, p -> { try (FileChannel c = FileChannel.open(p); FileChannel to = FileChannel.open(p.resolveSibling("n"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) { return c.transferTo(0, BIG, to); } }));
        jdk(channel, "FileChannelImpl.transferFrom", disk(Measure::big, p -> { try (FileChannel c = FileChannel.open(p); FileChannel to = FileChannel.open(p.resolveSibling("n"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) { return to.transferFrom(c, 0, BIG); } }));
        jdk(channel, "FileChannelImpl.truncate", each(p -> { try (FileChannel c = FileChannel.open(p, StandardOpenOption.WRITE)) { c.truncate(10); } }));
        jdk(channel, "FileChannelImpl.open", each(p -> FileChannel.open(p).close()));
        jdk(channel, "FileChannelImpl.position(long)", place -> { Path p = big(place.folder); try (FileChannel c = FileChannel.open(p)) { place.time(() -> { for (int i = 0; i < 20000; i++) { c.position(i); } return null; }); } });
        jdk("java/nio/file/spi/FileSystemProvider", "FileSystemProvider.newInputStream", each(p -> p.getFileSystem().provider().newInputStream(p).close()));
        jdk("sun/nio/fs/UnixFileSystemProvider", "UnixFileSystemProvider.checkAccess", each(p -> p.getFileSystem().provider().checkAccess(p)));
        jdk("sun/nio/fs/UnixFileSystemProvider", "UnixFileSystemProvider.createDirectory", eachOf(Measure::fresh, p -> p.getFileSystem().provider().createDirectory(p)));
        jdk("sun/nio/fs/UnixFileSystemProvider", "UnixFileSystemProvider.readSymbolicLink", eachOf(d -> { List<Path> links = new ArrayList<>(); for (Path p : many(d)) { links.add(Files.createSymbolicLink(Path.of(p + ".s"), p)); } return links; }, p -> p.getFileSystem().provider().readSymbolicLink(p)));
        jdk("sun/nio/fs/UnixPath", "UnixPath.toRealPath", each(Path::toRealPath));
        jdk("sun/nio/fs/UnixPath", "UnixPath.normalize()", cpu(300000, () -> Path.of("/a/./b/../c").normalize()));
        jdk("sun/nio/fs/UnixPath", "UnixPath.relativize", cpu(300000, () -> Path.of("/a/b/c").relativize(Path.of("/a/d"))));
        jdk("java/util/zip/ZipFile", "ZipFile.<init>(File)", eachOf(d -> copies(d, ".zip", zip(8, new byte[10], 5), 100), p -> new ZipFile(p.toFile()).close()));
        jdk("java/util/zip/ZipFile", "ZipFile.getInputStream", disk(d -> Files.write(d.resolve("a.zip"), zip(8, noise(4 * MIB), 0)), p -> { try (ZipFile z = new ZipFile(p.toFile())) { long all = 0; for (int i = 0; i < 8; i++) { all += drain(z.getInputStream(z.getEntry("m" + i))); } return all; } }));
        jdk("java/util/jar/JarFile", "JarFile.getManifest", eachOf(d -> copies(d, ".jar", zip(8, new byte[10], 5), 100), p -> { try (java.util.jar.JarFile j = new java.util.jar.JarFile(p.toFile())) { j.getManifest(); } }));
    }

    static Map<String, Integer> counted(int count) {
        Map<String, Integer> map = new HashMap<>();
        for (int i = 0; i < count; i++) { map.put("k" + i, i); }
        return map;
    }

    // --- the JDK: computing -----------------------------------------------------------------------------------------

    static void jdkCpu() throws Exception {
        byte[] zipped = gzip(PROSE);
        byte[] archive = zip(8, prose(MIB), 5);
        String prose = new String(PROSE, 0, MIB, StandardCharsets.US_ASCII);
        jdk("java/util/zip/GZIPInputStream", "GZIPInputStream.read(byte[],int,int)", cpu(5, () -> drain(new GZIPInputStream(new ByteArrayInputStream(zipped)))));
        jdk("java/util/zip/GZIPOutputStream", "GZIPOutputStream.write(byte[],int,int)", cpu(1, () -> gzip(PROSE)));
        jdk("java/util/zip/DeflaterOutputStream", "DeflaterOutputStream.write(byte[],int,int)", cpu(1, () -> { try (OutputStream out = new DeflaterOutputStream(OutputStream.nullOutputStream())) { out.write(PROSE, 0, MIB); } return null; }));
        jdk("java/util/zip/InflaterInputStream", "InflaterInputStream.read(byte[],int,int)", cpu(5, () -> drain(new GZIPInputStream(new ByteArrayInputStream(zipped)))));
        jdk("java/util/zip/ZipInputStream", "ZipInputStream.getNextEntry", cpu(2, () -> { ZipInputStream in = new ZipInputStream(new ByteArrayInputStream(archive)); while (in.getNextEntry() != null) { } return in; }));
        jdk("java/util/zip/ZipOutputStream", "ZipOutputStream.write(byte[],int,int)", cpu(1, () -> zip(2, prose(MIB), 5)));
        jdk("java/util/zip/CRC32", "CRC32.update(byte[],int,int)", cpu(50, () -> { CRC32 c = new CRC32(); c.update(PROSE, 0, PROSE.length); return c; }));
        jdk("java/util/zip/Adler32", "Adler32.update(byte[],int,int)", cpu(50, () -> { Adler32 c = new Adler32(); c.update(PROSE, 0, PROSE.length); return c; }));
        jdk("java/util/zip/Deflater", "Deflater.deflate(byte[],int,int,int)", cpu(3, () -> { Deflater d = new Deflater(); d.setInput(PROSE, 0, MIB); d.finish(); byte[] b = new byte[MIB]; while (!d.finished()) { d.deflate(b, 0, MIB, Deflater.NO_FLUSH); } d.end(); return b; }));
        jdk("java/security/MessageDigest", "MessageDigest.digest(byte[])", cpu(3, () -> MessageDigest.getInstance("SHA-256").digest(PROSE)));
        jdk("java/security/MessageDigest", "MessageDigest.update(byte[],int,int)", cpu(3, () -> { MessageDigest m = MessageDigest.getInstance("SHA-1"); m.update(PROSE, 0, PROSE.length); return m; }));
        jdk("java/security/KeyPairGenerator", "KeyPairGenerator.genKeyPair", cpu(1, () -> { KeyPairGenerator g = KeyPairGenerator.getInstance("RSA"); g.initialize(1024); return g.genKeyPair(); }));
        jdk("java/security/SecureRandom", "SecureRandom.nextBytes(byte[])", cpu(200, () -> { byte[] b = new byte[10000]; new SecureRandom().nextBytes(b); return b; }));
        jdk("javax/crypto/Cipher", "Cipher.doFinal(byte[])", cpu(5, () -> { javax.crypto.Cipher c = javax.crypto.Cipher.getInstance("AES/CBC/PKCS5Padding"); c.init(1, new javax.crypto.spec.SecretKeySpec(new byte[16], "AES")); return c.doFinal(PROSE); }));
        jdk("javax/crypto/Mac", "Mac.doFinal(byte[])", cpu(3, () -> { javax.crypto.Mac m = javax.crypto.Mac.getInstance("HmacSHA256"); m.init(new javax.crypto.spec.SecretKeySpec(new byte[16], "x")); return m.doFinal(PROSE); }));
        jdk("java/util/Base64", "Base64.Encoder.encode(byte[])", cpu(20, () -> Base64.getEncoder().encode(PROSE)));
        jdk("java/util/Base64", "Base64.Decoder.decode(byte[])", cpu(20, () -> Base64.getDecoder().decode(Base64.getEncoder().encode(PROSE))));
        jdk("java/util/Arrays", "Arrays.sort(int[])", cpu(3, () -> { int[] a = new Random(1).ints(300000).toArray(); Arrays.sort(a); return a; }));
        jdk("java/util/ArrayList", "ArrayList.sort", cpu(1, () -> { List<String> a = new ArrayList<>(counted(50000).keySet()); a.sort(null); return a; }));
        jdk("java/util/HashMap", "HashMap.put", cpu(1, () -> counted(200000)));
        jdk("java/util/TreeMap", "TreeMap.put(K,V)", cpu(1, () -> { Map<Integer, Integer> m = new TreeMap<>(); for (int i = 0; i < 100000; i++) { m.put(i * 7919 % 100003, i); } return m; }));
        jdk("java/util/concurrent/ConcurrentHashMap", "ConcurrentHashMap.merge", cpu(1, () -> { ConcurrentHashMap<Integer, Integer> m = new ConcurrentHashMap<>(); for (int i = 0; i < 300000; i++) { m.merge(i % 1000, 1, Integer::sum); } return m; }));
        jdk("java/util/PriorityQueue", "PriorityQueue.poll", cpu(1, () -> { PriorityQueue<Integer> q = new PriorityQueue<>(counted(50000).values()); while (q.poll() != null) { } return q; }));
        jdk("java/util/Formatter", "Formatter.format(String,Object...)", cpu(5000, () -> new Formatter().format("%5.2f %s %d", 1.5, "a", 3)));
        jdk("java/util/regex/Matcher", "Matcher.find()", cpu(1, () -> { java.util.regex.Matcher m = java.util.regex.Pattern.compile("t[a-z]e \\w+").matcher(prose); int n = 0; while (m.find()) { n++; } return n; }));
        jdk("java/lang/String", "String.split(String,int)", cpu(5, () -> prose.split(" ", 0)));
        jdk("java/lang/String", "String.replace(CharSequence,CharSequence)", cpu(10, () -> prose.replace("the", "a")));
        jdk("java/lang/String", "String.getBytes(Charset)", cpu(50, () -> prose.getBytes(StandardCharsets.UTF_16)));
        jdk("java/lang/StringBuilder", "StringBuilder.append(String)", cpu(10, () -> { StringBuilder b = new StringBuilder(); for (int i = 0; i < 50000; i++) { b.append("abcdef"); } return b; }));
        jdk("java/lang/Integer", "Integer.parseInt(String)", cpu(500000, () -> Integer.parseInt("123456")));
        jdk("java/lang/Double", "Double.parseDouble", cpu(100000, () -> Double.parseDouble("12345.6789e3")));
        jdk("java/math/BigInteger", "BigInteger.multiply(BigInteger)", cpu(30, () -> new BigInteger(1, noise(5000)).multiply(new BigInteger(1, noise(5000)))));
        jdk("java/math/BigInteger", "BigInteger.modPow", cpu(2, () -> new BigInteger(1, noise(200)).modPow(new BigInteger(1, noise(128)), new BigInteger(1, noise(128)))));
        jdk("java/math/BigDecimal", "BigDecimal.divide(BigDecimal,int,RoundingMode)", cpu(3000, () -> new BigDecimal("1").divide(new BigDecimal("3.7"), 200, RoundingMode.HALF_UP)));
        jdk("java/util/UUID", "UUID.fromString", cpu(200000, () -> UUID.fromString("123e4567-e89b-12d3-a456-426614174000")));
        jdk("java/net/URI", "URI.create", cpu(20000, () -> URI.create("http://a.b:80/c?d=e#f")));
        jdk("java/net/URLEncoder", "URLEncoder.encode(String,Charset)", cpu(5, () -> URLEncoder.encode(prose.substring(0, 100000), StandardCharsets.UTF_8)));
        jdk("java/net/InetSocketAddress", "InetSocketAddress.toString", cpu(100000, () -> new InetSocketAddress(8080).toString()));
        jdk("java/net/Inet4Address", "Inet4Address.getHostAddress", cpu(200000, () -> InetAddress.getLoopbackAddress().getHostAddress()));
        jdk("java/time/format/DateTimeFormatter", "DateTimeFormatter.format", cpu(20000, () -> DateTimeFormatter.ISO_DATE.format(LocalDate.of(2026, 1, 2))));
        jdk("java/time/LocalDate", "LocalDate.parse(CharSequence)", cpu(20000, () -> LocalDate.parse("2026-01-02")));
        jdk("java/text/DecimalFormat", "DecimalFormat.format(double,StringBuffer,FieldPosition)", cpu(20000, () -> new DecimalFormat("#.##").format(3.14159)));
        jdk("java/text/MessageFormat", "MessageFormat.format(String,Object...)", cpu(5000, () -> MessageFormat.format("{0} and {1}", "a", "b")));
        jdk("java/text/Normalizer", "Normalizer.normalize", cpu(20, () -> Normalizer.normalize("é" + prose.substring(0, 50000), Normalizer.Form.NFD)));
        jdk("java/util/stream/ReferencePipeline", "ReferencePipeline.collect(Collector)", cpu(3, () -> IntStream.range(0, 200000).boxed().collect(Collectors.groupingBy(i -> i % 10))));
        jdk("java/util/Random", "Random.nextGaussian", cpu(1, () -> { Random r = new Random(1); double x = 0; for (int i = 0; i < 500000; i++) { x += r.nextGaussian(); } return x; }));
        jdk("java/util/BitSet", "BitSet.cardinality", cpu(2000, () -> BitSet.valueOf(new long[20000]).cardinality()));
        jdk("java/util/concurrent/locks/LockSupport", "LockSupport.parkNanos(long)", cpu(1, () -> { LockSupport.parkNanos(20_000_000); return null; }));
        jdk("java/util/concurrent/CountDownLatch", "CountDownLatch.await(long,TimeUnit)", cpu(1, () -> new CountDownLatch(1).await(20, TimeUnit.MILLISECONDS)));
        jdk("java/util/concurrent/LinkedBlockingQueue", "LinkedBlockingQueue.poll(long,TimeUnit)", cpu(1, () -> new LinkedBlockingQueue<>().poll(20, TimeUnit.MILLISECONDS)));
        jdk("java/util/concurrent/Semaphore", "Semaphore.tryAcquire(long,TimeUnit)", cpu(1, () -> new Semaphore(0).tryAcquire(20, TimeUnit.MILLISECONDS)));
    }

    // --- the JDK: the network ---------------------------------------------------------------------------------------

    static Workload repeated(int times, Do<Place> call) {
        return place -> place.time(() -> {
            for (int i = 0; i < times; i++) {
                call.use(place);
            }
            return null;
        });
    }

    static Workload reading(String text, Use<Socket> use) {
        return place -> {
            try (Socket socket = lines(place, text)) {
                place.time(() -> use.use(socket));
            }
        };
    }

    static Workload channelled(String text, Use<SocketChannel> use) {
        return place -> {
            try (SocketChannel channel = channel(place, text)) {
                place.time(() -> use.use(channel));
            }
        };
    }

    /** The selector is ready before the peer is asked: opening one takes as long as the answer. */
    static void selecting(Place place) throws Exception {
        try (SocketChannel channel = channel(place, ""); Selector selector = Selector.open()) {
            channel.configureBlocking(false);
            channel.register(selector, SelectionKey.OP_READ);
            channel.write(ByteBuffer.wrap("hello\n".getBytes(StandardCharsets.US_ASCII)));
            place.time(() -> selector.select(1000));
        }
    }

    static Object readSome(SocketChannel channel, int count) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocateDirect(count);
        while (buffer.hasRemaining()) {
            channel.read(buffer);
        }
        return buffer;
    }

    static void jdkNet() {
        jdk("java/net/Socket", "Socket.connect(SocketAddress,int)", repeated(5, p -> { try (Socket s = new Socket()) { s.connect(p.address("lines"), 1000); } }));
        jdk("java/net/Socket", "Socket.connect(SocketAddress)", repeated(5, p -> { try (Socket s = new Socket()) { s.connect(p.address("lines")); } }));
        jdk("java/net/Socket", "Socket.<init>(InetAddress,int)", repeated(5, p -> new Socket(p.address("lines").getAddress(), p.ports.get("lines")).close()));
        jdk("java/net/Socket", "Socket.SocketInputStream.read(byte[],int,int)", reading("SEND 100000\n", s -> s.getInputStream().readNBytes(100000)));
        jdk("java/net/Socket", "Socket.SocketOutputStream.write(byte[],int,int)", reading("SINK 4194304\n", s -> { s.getOutputStream().write(PROSE); return null; }));
        jdk("sun/nio/ch/NioSocketImpl", "NioSocketImpl.implRead", reading("hello\n", s -> s.getInputStream().read(new byte[100])));
        jdk("sun/nio/ch/NioSocketImpl", "NioSocketImpl.implWrite", reading("SINK 4194304\n", s -> { s.getOutputStream().write(PROSE); return null; }));
        jdk("sun/nio/ch/NioSocketImpl", "NioSocketImpl.read(byte[],int,int)", reading("hello\n", s -> s.getInputStream().read(new byte[100])));
        jdk("sun/nio/ch/NioSocketImpl", "NioSocketImpl.connect(SocketAddress,int)", repeated(5, p -> { try (Socket s = new Socket()) { s.connect(p.address("lines"), 500); } }));
        jdk("sun/nio/ch/NioSocketImpl", "NioSocketImpl.park(FileDescriptor,int,long)", reading("hello\n", s -> { s.setSoTimeout(1000); return s.getInputStream().read(new byte[100]); }));
        jdk("java/io/InputStreamReader", "InputStreamReader.read(char[],int,int)", reading("SEND 100000\n", s -> { Reader r = new InputStreamReader(s.getInputStream()); char[] b = new char[8192]; for (int n = 0; n < 100000; ) { n += r.read(b, 0, b.length); } return null; }));
        jdk("java/net/ServerSocket", "ServerSocket.accept", place -> { try (ServerSocket server = new ServerSocket(0); Socket control = dialled(place, server.getLocalPort())) { place.time(() -> { server.accept().close(); return null; }); } });
        jdk("sun/nio/ch/NioSocketImpl", "NioSocketImpl.accept(SocketImpl)", place -> { try (ServerSocket server = new ServerSocket(0); Socket control = dialled(place, server.getLocalPort())) { place.time(() -> { server.accept().close(); return null; }); } });
        jdk("sun/nio/ch/ServerSocketChannelImpl", "ServerSocketChannelImpl.accept", place -> { try (ServerSocketChannel server = ServerSocketChannel.open().bind(new InetSocketAddress(0)); Socket control = dialled(place, server.socket().getLocalPort())) { place.time(() -> { server.accept().close(); return null; }); } });
        jdk("sun/nio/ch/SocketChannelImpl", "SocketChannelImpl.connect", repeated(5, p -> SocketChannel.open(p.address("lines")).close()));
        jdk("java/nio/channels/SocketChannel", "SocketChannel.open(SocketAddress)", repeated(5, p -> SocketChannel.open(p.address("lines")).close()));
        jdk("sun/nio/ch/SocketChannelImpl", "SocketChannelImpl.read(ByteBuffer)", channelled("SEND 100000\n", c -> readSome(c, 100000)));
        jdk("sun/nio/ch/SocketChannelImpl", "SocketChannelImpl.write(ByteBuffer)", channelled("SINK 4194304\n", c -> c.write(ByteBuffer.wrap(PROSE))));
        jdk("sun/nio/ch/SelectorImpl", "SelectorImpl.select(long)", Measure::selecting);
        jdk("sun/nio/ch/SelectorImpl", "SelectorImpl.lockAndDoSelect", Measure::selecting);
        jdk("sun/nio/ch/EPollSelectorImpl", "EPollSelectorImpl.doSelect", Measure::selecting);
        jdk("java/nio/channels/Channels", "Channels.newInputStream(ReadableByteChannel)", cpu(20000, () -> Channels.newInputStream(Channels.newChannel(new ByteArrayInputStream(PROSE)))));
        jdk("java/net/DatagramSocket", "DatagramSocket.receive", place -> { try (DatagramSocket s = new DatagramSocket()) { s.send(new DatagramPacket(new byte[10], 10, place.address("udp"))); place.time(() -> { s.receive(new DatagramPacket(new byte[10], 10)); return null; }); } });
        jdk("sun/nio/ch/DatagramChannelImpl", "DatagramChannelImpl.receive(ByteBuffer)", place -> { try (DatagramChannel c = DatagramChannel.open()) { c.send(ByteBuffer.allocate(10), place.address("udp")); place.time(() -> c.receive(ByteBuffer.allocate(10))); } });
        jdk("java/net/URL", "URL.openStream", repeated(1, p -> new URL(p.url("bytes/100000")).openStream().close()));
        jdk("sun/net/www/protocol/http/HttpURLConnection", "HttpURLConnection.getInputStream", repeated(1, p -> drain(new URL(p.url("bytes/100000")).openConnection().getInputStream())));
        jdk("sun/net/www/protocol/http/HttpURLConnection", "HttpURLConnection.connect", repeated(5, p -> { HttpURLConnection c = (HttpURLConnection) new URL(p.url("a")).openConnection(); c.setRequestProperty("Connection", "close"); c.connect(); c.disconnect(); }));
        jdk("java/net/HttpURLConnection", "HttpURLConnection.getResponseCode", repeated(1, p -> ((HttpURLConnection) new URL(p.url("a")).openConnection()).getResponseCode()));
        jdk("java/net/URLConnection", "URLConnection.getContentLength", repeated(1, p -> new URL(p.url("a")).openConnection().getContentLength()));
        jdk("sun/net/www/http/HttpClient", "HttpClient.parseHTTP", repeated(1, p -> drain(new URL(p.url("a")).openStream())));
        jdk("sun/net/www/http/HttpClient", "HttpClient.openServer()", repeated(5, p -> { HttpURLConnection c = (HttpURLConnection) new URL(p.url("a")).openConnection(); c.connect(); c.disconnect(); }));
        jdk("sun/nio/ch/UnixAsynchronousSocketChannelImpl", "UnixAsynchronousSocketChannelImpl.implConnect", repeated(5, p -> { try (AsynchronousSocketChannel c = AsynchronousSocketChannel.open()) { c.connect(p.address("lines")).get(); } }));
        jdk("sun/nio/ch/UnixAsynchronousSocketChannelImpl", "UnixAsynchronousSocketChannelImpl.implRead", place -> { try (AsynchronousSocketChannel c = AsynchronousSocketChannel.open()) { c.connect(place.address("lines")).get(); c.write(ByteBuffer.wrap("hello\n".getBytes())).get(); place.time(() -> c.read(ByteBuffer.allocate(100)).get()); } });
        // Last, since so many at once make a peer lose some.
        jdk("java/net/DatagramSocket", "DatagramSocket.send", place -> { try (DatagramSocket s = new DatagramSocket()) { place.time(() -> { for (int i = 0; i < 300; i++) { s.send(new DatagramPacket(new byte[500], 500, place.address("udp"))); } return null; }); } });
    }

    static void run(Case its, int number, int run, Path folder, String peer, Map<String, Integer> ports) throws Exception {
        Path place = folder.resolve("w");
        if (Files.exists(place)) {
            try (Stream<Path> paths = Files.walk(place)) {
                for (Path path : paths.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
                    Files.delete(path);
                }
            }
        }
        Files.createDirectories(place);
        ask("sync");
        its.workload().run(new Place(place, peer, ports, number, run));
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ").replace("\t", " ") + '"';
    }

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err);  // what a measured function prints is no message
        Path folder = Path.of(arguments[0]);
        Map<String, Integer> ports = new HashMap<>();
        for (String pair : arguments[2].split(",")) {
            ports.put(pair.split("=")[0], Integer.parseInt(pair.split("=")[1]));
        }
        jdkFiles();
        jdkCpu();
        jdkNet();
        MeasureLibraries.add();
        MeasureParquet.add();
        MeasureNetty.add();
        MeasureHttp.add();
        MeasureLucene.add();
        int runs = Integer.parseInt(arguments[3]);
        Set<String> numbers = arguments.length > 5 ? Set.of(arguments[5].split(",")) : null;
        for (int number = 0; number < CASES.size(); number++) {
            Case its = CASES.get(number);
            if (!java.util.regex.Pattern.compile(arguments[4]).matcher(its.library() + " " + its.name()).find()
                || numbers != null && !numbers.contains(Integer.toString(number))) {
                continue;
            }
            OUT.printf("{\"case\": %d, \"library\": %s, \"file\": %s, \"qualified\": %s}%n", number, quoted(its.library()), quoted(its.file()), quoted(its.name()));
            for (int run = 0; run < runs; run++) {
                try {
                    run(its, number, run, folder, arguments[1], ports);
                } catch (Exception | LinkageError error) {
                    OUT.printf("{\"failed\": %d, \"why\": %s}%n", number, quoted(error.toString()));
                    break;
                }
            }
        }
        OUT.println("{\"done\": " + CASES.size() + "}");
        System.exit(0);
    }
}
