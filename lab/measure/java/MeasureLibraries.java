import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import java.io.*;
import java.net.Socket;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.*;
import okhttp3.*;
import okio.Buffer;
import okio.BufferedSink;
import okio.BufferedSource;
import okio.Okio;
import org.apache.commons.compress.archivers.tar.*;
import org.apache.commons.compress.archivers.zip.*;
import org.apache.commons.compress.compressors.bzip2.*;
import org.apache.commons.compress.compressors.gzip.*;
import org.apache.commons.compress.compressors.lz4.*;
import org.apache.commons.io.FileUtils;
import org.apache.commons.io.FilenameUtils;
import org.apache.commons.io.input.ReversedLinesFileReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.io.*;
import org.apache.hadoop.net.NetUtils;

/** The calls of libraries other than the JDK. */
final class MeasureLibraries {
    private static final byte[] DATA = Measure.DATA, PROSE = Measure.PROSE;
    private static final int MIB = Measure.MIB, BIG = Measure.BIG;

    private MeasureLibraries() { }

    static void add() throws Exception {
        hadoop();
        commons();
        others();
    }

    // --- Hadoop -----------------------------------------------------------------------------------------------------

    private static void hadoop(String file, String name, Measure.Workload workload) {
        Measure.add("hadoop", "hadoop-common/org/apache/hadoop/" + file + ".java", name, workload);
    }

    private interface OnPath { void use(FileSystem fs, Path path) throws Exception; }

    private static Measure.Workload each(FileSystem fs, OnPath use) {
        return Measure.each(p -> use.use(fs, new Path(p.toString())));
    }

    private static Measure.Workload fresh(FileSystem fs, OnPath use) {
        return Measure.eachOf(Measure::fresh, p -> use.use(fs, new Path(p.toString())));
    }

    private static final int FORKS = 15;

    /** Without its native library Hadoop runs a program for each file that it makes or asks for its permissions. */
    private static Measure.Workload forking(FileSystem fs, Measure.Make<List<java.nio.file.Path>> make, OnPath use) {
        return Measure.eachOf(d -> make.make(d).subList(0, FORKS), p -> use.use(fs, new Path(p.toString())));
    }

    private static java.nio.file.Path folderOfSome(java.nio.file.Path folder) throws IOException {
        for (int i = 0; i < FORKS; i++) {
            Files.write(Files.createDirectory(folder.resolve("d" + i)).resolve("file.txt"), new byte[3000]);
        }
        return folder;
    }

    private static Measure.Workload folders(FileSystem fs, OnPath use) {
        return Measure.eachOf(Measure::folders, p -> use.use(fs, new Path(p.toString())));
    }

    private static Path at(java.nio.file.Path path, String name) { return new Path(path.resolve(name).toString()); }

    private static Path at(java.nio.file.Path path) { return new Path(path.toString()); }

    private static long readAll(FileSystem fs, Path path) throws IOException {
        try (FSDataInputStream in = fs.open(path)) {
            return Measure.drain(in);
        }
    }

    private static void hadoop() throws Exception {
        Configuration conf = new Configuration(false);
        conf.set("fs.file.impl", LocalFileSystem.class.getName());
        RawLocalFileSystem raw = new RawLocalFileSystem();
        raw.initialize(java.net.URI.create("file:///"), conf);
        LocalFileSystem local = FileSystem.getLocal(conf);
        String f = "fs/RawLocalFileSystem";
        hadoop(f, "RawLocalFileSystem.open(Path,int)", each(raw, (fs, p) -> fs.open(p, 4096).close()));
        hadoop(f, "RawLocalFileSystem.create(Path,boolean,int,short,long,Progressable)", forking(raw, Measure::fresh, (fs, p) -> fs.create(p, true, 4096, (short) 1, 1 << 20, null).close()));
        hadoop(f, "RawLocalFileSystem.append(Path,int,Progressable)", each(raw, (fs, p) -> fs.append(p, 4096, null).close()));
        hadoop(f, "RawLocalFileSystem.rename", each(raw, (fs, p) -> fs.rename(p, p.suffix(".n"))));
        hadoop(f, "RawLocalFileSystem.delete", each(raw, (fs, p) -> fs.delete(p, false)));
        hadoop(f, "RawLocalFileSystem.listStatus", folders(raw, (fs, p) -> fs.listStatus(p)));
        hadoop(f, "RawLocalFileSystem.mkdirs(Path)", forking(raw, Measure::fresh, (fs, p) -> fs.mkdirs(p)));
        hadoop(f, "RawLocalFileSystem.getFileStatus", each(raw, (fs, p) -> fs.getFileStatus(p)));
        hadoop(f, "RawLocalFileSystem.exists", each(raw, (fs, p) -> fs.exists(p)));
        hadoop(f, "RawLocalFileSystem.truncate", each(raw, (fs, p) -> fs.truncate(p, 10)));
        hadoop(f, "RawLocalFileSystem.setTimes", each(raw, (fs, p) -> fs.setTimes(p, 5000, 5000)));
        hadoop(f, "RawLocalFileSystem.setPermission", forking(raw, Measure::many, (fs, p) -> fs.setPermission(p, new org.apache.hadoop.fs.permission.FsPermission((short) 0600))));
        hadoop(f, "RawLocalFileSystem.getFileLinkStatus", forking(raw, Measure::many, (fs, p) -> fs.getFileLinkStatus(p)));
        hadoop(f, "RawLocalFileSystem.pathToFile", Measure.cpu(200000, () -> raw.pathToFile(new Path("/a/b"))));
        hadoop(f, "RawLocalFileSystem.LocalFSFileInputStream.read(byte[],int,int)", Measure.disk(Measure::big, p -> readAll(raw, at(p))));
        hadoop(f, "RawLocalFileSystem.LocalFSFileOutputStream.write(byte[],int,int)", Measure.disk(d -> at(d, "n"), p -> { try (OutputStream out = raw.create(p)) { out.write(DATA, 0, BIG); } return null; }));
        f = "fs/ChecksumFileSystem";
        hadoop(f, "ChecksumFileSystem.open(Path,int)", each(local, (fs, p) -> fs.open(p, 4096).close()));
        hadoop(f, "ChecksumFileSystem.create(Path,FsPermission,boolean,int,short,long,Progressable)", forking(local, Measure::fresh, (fs, p) -> fs.create(p).close()));
        hadoop(f, "ChecksumFileSystem.rename", each(local, (fs, p) -> fs.rename(p, p.suffix(".n"))));
        hadoop(f, "ChecksumFileSystem.delete", each(local, (fs, p) -> fs.delete(p, false)));
        hadoop(f, "ChecksumFileSystem.listStatus", folders(local, (fs, p) -> fs.listStatus(p)));
        hadoop(f, "ChecksumFileSystem.mkdirs", forking(local, Measure::fresh, (fs, p) -> fs.mkdirs(p)));
        hadoop(f, "ChecksumFileSystem.getChecksumFile", Measure.cpu(50000, () -> local.getChecksumFile(new Path("/a/b"))));
        f = "fs/FileSystem";
        hadoop(f, "FileSystem.exists", each(raw, (fs, p) -> local.exists(p)));
        hadoop(f, "FileSystem.isFile", each(raw, (fs, p) -> fs.isFile(p)));
        hadoop(f, "FileSystem.isDirectory", each(raw, (fs, p) -> fs.isDirectory(p)));
        hadoop(f, "FileSystem.globStatus(Path)", Measure.disk(Measure::folderOfMany, p -> raw.globStatus(at(p, "*/*.txt"))));
        hadoop(f, "FileSystem.getContentSummary", Measure.disk(MeasureLibraries::folderOfSome, p -> raw.getContentSummary(at(p))));
        hadoop(f, "FileSystem.listFiles", Measure.disk(MeasureLibraries::folderOfSome, p -> { RemoteIterator<LocatedFileStatus> its = raw.listFiles(at(p), true); while (its.hasNext()) { its.next(); } return null; }));
        hadoop(f, "FileSystem.copyFromLocalFile(boolean,boolean,Path,Path)", Measure.disk(Measure::big, p -> { FileSystem fs = raw; fs.copyFromLocalFile(false, true, at(p), at(p.getParent(), "n")); return null; }));
        hadoop(f, "FileSystem.createNewFile", forking(raw, Measure::fresh, (fs, p) -> fs.createNewFile(p)));
        hadoop("fs/Path", "Path.<init>(String)", Measure.cpu(50000, () -> new Path("hdfs://a:1/b/c/d")));
        hadoop("fs/Path", "Path.getParent", Measure.cpu(100000, () -> new Path("/a/b").getParent()));
        hadoop("fs/FileUtil", "FileUtil.copy(FileSystem,Path,FileSystem,Path,boolean,Configuration)", Measure.disk(Measure::big, p -> FileUtil.copy(raw, at(p), raw, at(p.getParent(), "n"), false, conf)));
        hadoop("fs/FileUtil", "FileUtil.fullyDelete(File)", Measure.disk(d -> Measure.folderOfMany(Files.createDirectory(d.resolve("s"))), p -> FileUtil.fullyDelete(p.toFile())));
        hadoop("fs/FileUtil", "FileUtil.getDU", Measure.disk(Measure::folderOfMany, p -> FileUtil.getDU(p.toFile())));
        hadoop("fs/FileUtil", "FileUtil.listFiles", Measure.eachOf(Measure::folders, p -> FileUtil.listFiles(p.toFile())));
        hadoop("fs/FileUtil", "FileUtil.unZip(File,File)", Measure.disk(d -> Files.write(d.resolve("a.zip"), Measure.zip(8, Measure.noise(4 * MIB), 0)), p -> { FileUtil.unZip(p.toFile(), p.resolveSibling("out").toFile()); return null; }));
        hadoop("io/IOUtils", "IOUtils.copyBytes(InputStream,OutputStream,int)", Measure.disk(Measure::big, p -> { try (InputStream in = new FileInputStream(p.toFile()); OutputStream out = new FileOutputStream(p + ".n")) { IOUtils.copyBytes(in, out, 65536); } return null; }));
        hadoop("io/IOUtils", "IOUtils.readFully", Measure.disk(Measure::big, p -> { try (InputStream in = new FileInputStream(p.toFile())) { IOUtils.readFully(in, new byte[BIG], 0, BIG); } return null; }));
        hadoop("io/SequenceFile", "SequenceFile.Writer.append(Object,Object)", Measure.disk(d -> at(d, "s"), p -> { sequence(conf, p, SequenceFile.CompressionType.NONE); return null; }));
        hadoop("io/SequenceFile", "SequenceFile.Reader.next(Writable,Writable)", Measure.disk(d -> { Path p = at(d, "s"); sequence(conf, p, SequenceFile.CompressionType.NONE); return p; }, p -> readSequence(conf, p)));
        hadoop("io/SequenceFile", "SequenceFile.BlockCompressWriter.append(Object,Object)", Measure.disk(d -> at(d, "s"), p -> { sequence(conf, p, SequenceFile.CompressionType.BLOCK); return null; }));
        hadoop("io/MapFile", "MapFile.Reader.get", Measure.disk(d -> { Path p = at(d, "m"); try (MapFile.Writer w = new MapFile.Writer(conf, p, MapFile.Writer.keyClass(IntWritable.class), MapFile.Writer.valueClass(BytesWritable.class))) { for (int i = 0; i < 5000; i++) { w.append(new IntWritable(i), new BytesWritable(Measure.noise(1000))); } } return p; }, p -> { try (MapFile.Reader r = new MapFile.Reader(p, conf)) { for (int i = 0; i < 5000; i += 50) { r.get(new IntWritable(i), new BytesWritable()); } } return null; }));
        hadoop("io/Text", "Text.encode(String)", Measure.cpu(20000, () -> Text.encode("a text of some words")));
        hadoop("io/Text", "Text.decode(byte[])", Measure.cpu(20000, () -> Text.decode(PROSE, 0, 100)));
        hadoop("io/WritableUtils", "WritableUtils.writeVLong", Measure.cpu(20, () -> { DataOutputStream out = new DataOutputStream(new ByteArrayOutputStream()); for (int i = 0; i < 20000; i++) { WritableUtils.writeVLong(out, i * 1000L); } return out; }));
        hadoop("io/MD5Hash", "MD5Hash.digest(byte[])", Measure.cpu(5, () -> MD5Hash.digest(PROSE)));
        hadoop("conf/Configuration", "Configuration.get(String)", Measure.cpu(100000, () -> conf.get("fs.file.impl")));
        hadoop("conf/Configuration", "Configuration.writeXml(OutputStream)", Measure.cpu(20, () -> { conf.writeXml(new ByteArrayOutputStream()); return null; }));
        hadoop("util/DataChecksum", "DataChecksum.update(byte[],int,int)", Measure.cpu(20, () -> { org.apache.hadoop.util.DataChecksum c = org.apache.hadoop.util.DataChecksum.newDataChecksum(org.apache.hadoop.util.DataChecksum.Type.CRC32C, 512); c.update(PROSE, 0, PROSE.length); return c; }));
        hadoop("net/NetUtils", "NetUtils.connect(Socket,SocketAddress,int)", Measure.repeated(5, p -> { try (Socket s = javax.net.SocketFactory.getDefault().createSocket()) { NetUtils.connect(s, p.address("lines"), 1000); } }));
        hadoop("net/SocketInputStream", "SocketInputStream.read(byte[],int,int)", Measure.channelled("SEND 100000\n", c -> { c.configureBlocking(false); InputStream in = new org.apache.hadoop.net.SocketInputStream(c, 1000); byte[] b = new byte[8192]; int all = 0; while (all < 100000) { all += in.read(b, 0, b.length); } return all; }));
        hadoop("net/SocketOutputStream", "SocketOutputStream.write(byte[],int,int)", Measure.channelled("SINK 4194304\n", c -> { c.configureBlocking(false); new org.apache.hadoop.net.SocketOutputStream(c, 1000).write(PROSE); return null; }));
        hadoop("net/SocketIOWithTimeout", "SocketIOWithTimeout.doIO", Measure.channelled("hello\n", c -> { c.configureBlocking(false); return new org.apache.hadoop.net.SocketInputStream(c, 1000).read(new byte[100]); }));
    }

    private static void sequence(Configuration conf, Path path, SequenceFile.CompressionType type) throws IOException {
        try (SequenceFile.Writer writer = SequenceFile.createWriter(conf, SequenceFile.Writer.file(path),
            SequenceFile.Writer.keyClass(IntWritable.class), SequenceFile.Writer.valueClass(BytesWritable.class), SequenceFile.Writer.compression(type))) {
            IntWritable key = new IntWritable();
            BytesWritable value = new BytesWritable(Arrays.copyOf(PROSE, 8000));
            for (int i = 0; i < 2500; i++) {
                key.set(i);
                writer.append(key, value);
            }
        }
    }

    private static Object readSequence(Configuration conf, Path path) throws IOException {
        try (SequenceFile.Reader reader = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path))) {
            IntWritable key = new IntWritable();
            BytesWritable value = new BytesWritable();
            while (reader.next(key, value)) { }
            return key;
        }
    }

    // --- commons-io and commons-compress ----------------------------------------------------------------------------

    private static void io(String file, String name, Measure.Workload workload) {
        Measure.add("commons-io", "commons-io/org/apache/commons/io/" + file + ".java", name, workload);
    }

    private static void compress(String file, String name, Measure.Workload workload) {
        Measure.add("commons-compress", "commons-compress/org/apache/commons/compress/" + file + ".java", name, workload);
    }

    private static byte[] tar(int entries, byte[] data) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (TarArchiveOutputStream out = new TarArchiveOutputStream(bytes)) {
            for (int i = 0; i < entries; i++) {
                TarArchiveEntry entry = new TarArchiveEntry("m" + i);
                entry.setSize(data.length);
                out.putArchiveEntry(entry);
                out.write(data);
                out.closeArchiveEntry();
            }
        }
        return bytes.toByteArray();
    }

    private static byte[] bzip(byte[] data) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (OutputStream out = new BZip2CompressorOutputStream(bytes)) {
            out.write(data);
        }
        return bytes.toByteArray();
    }

    private static void commons() throws Exception {
        String f = "FileUtils";
        io(f, "FileUtils.copyFile(File,File)", Measure.disk(Measure::big, p -> { FileUtils.copyFile(p.toFile(), new File(p + ".n")); return null; }));
        io(f, "FileUtils.readFileToByteArray", Measure.disk(Measure::big, p -> FileUtils.readFileToByteArray(p.toFile())));
        io(f, "FileUtils.readFileToString(File,Charset)", Measure.disk(Measure::text, p -> FileUtils.readFileToString(p.toFile(), StandardCharsets.ISO_8859_1)));
        io(f, "FileUtils.readLines(File,Charset)", Measure.disk(Measure::text, p -> FileUtils.readLines(p.toFile(), StandardCharsets.ISO_8859_1)));
        io(f, "FileUtils.writeByteArrayToFile(File,byte[])", Measure.disk(d -> d.resolve("n"), p -> { FileUtils.writeByteArrayToFile(p.toFile(), DATA); return null; }));
        io(f, "FileUtils.deleteDirectory", Measure.disk(d -> Measure.folderOfMany(Files.createDirectory(d.resolve("s"))), p -> { FileUtils.deleteDirectory(p.toFile()); return null; }));
        io(f, "FileUtils.cleanDirectory", Measure.disk(d -> Measure.folderOfMany(Files.createDirectory(d.resolve("s"))), p -> { FileUtils.cleanDirectory(p.toFile()); return null; }));
        io(f, "FileUtils.copyDirectory(File,File)", Measure.disk(d -> Measure.folderOfMany(Files.createDirectory(d.resolve("s"))), p -> { FileUtils.copyDirectory(p.toFile(), p.resolveSibling("t").toFile()); return null; }));
        io(f, "FileUtils.moveFile(File,File)", Measure.each(p -> FileUtils.moveFile(p.toFile(), new File(p + ".n"))));
        io(f, "FileUtils.sizeOfDirectory", Measure.disk(Measure::folderOfMany, p -> FileUtils.sizeOfDirectory(p.toFile())));
        io(f, "FileUtils.listFiles(File,String[],boolean)", Measure.disk(Measure::folderOfMany, p -> FileUtils.listFiles(p.toFile(), null, true)));
        io(f, "FileUtils.touch", Measure.eachOf(Measure::fresh, p -> FileUtils.touch(p.toFile())));
        io(f, "FileUtils.forceMkdir", Measure.eachOf(Measure::fresh, p -> FileUtils.forceMkdir(p.toFile())));
        io(f, "FileUtils.forceDelete(File)", Measure.each(p -> FileUtils.forceDelete(p.toFile())));
        io(f, "FileUtils.contentEquals(File,File)", Measure.disk(d -> { Files.write(d.resolve("b"), DATA); return Measure.big(d); }, p -> FileUtils.contentEquals(p.toFile(), p.resolveSibling("b").toFile())));
        io(f, "FileUtils.checksumCRC32", Measure.disk(Measure::big, p -> FileUtils.checksumCRC32(p.toFile())));
        io(f, "FileUtils.copyURLToFile(URL,File)", Measure.repeated(1, p -> FileUtils.copyURLToFile(new URL(p.url("bytes/100000")), p.path("n").toFile())));
        io(f, "FileUtils.byteCountToDisplaySize(long)", Measure.cpu(100000, () -> FileUtils.byteCountToDisplaySize(123456789L)));
        io("IOUtils", "IOUtils.toByteArray(URL)", Measure.repeated(1, p -> org.apache.commons.io.IOUtils.toByteArray(new URL(p.url("bytes/100000")))));
        io("IOUtils", "IOUtils.contentEquals(InputStream,InputStream)", Measure.cpu(20, () -> org.apache.commons.io.IOUtils.contentEquals(new ByteArrayInputStream(PROSE), new ByteArrayInputStream(PROSE))));
        io("FilenameUtils", "FilenameUtils.normalize(String)", Measure.cpu(50000, () -> FilenameUtils.normalize("/a/./b/../c")));
        io("FilenameUtils", "FilenameUtils.wildcardMatch(String,String)", Measure.cpu(50000, () -> FilenameUtils.wildcardMatch("abc.txt", "*.t?t")));
        io("file/PathUtils", "PathUtils.countDirectory(Path)", Measure.disk(Measure::folderOfMany, p -> org.apache.commons.io.file.PathUtils.countDirectory(p)));
        io("file/PathUtils", "PathUtils.deleteDirectory(Path)", Measure.disk(d -> Measure.folderOfMany(Files.createDirectory(d.resolve("s"))), p -> org.apache.commons.io.file.PathUtils.deleteDirectory(p)));
        io("input/ReversedLinesFileReader", "ReversedLinesFileReader.readLine", Measure.disk(Measure::text, p -> { try (ReversedLinesFileReader r = ReversedLinesFileReader.builder().setPath(p).setBufferSize(65536).setCharset(StandardCharsets.ISO_8859_1).get()) { for (int i = 0; i < 100000; i++) { r.readLine(); } } return null; }));
        byte[] bzipped = bzip(Arrays.copyOf(PROSE, MIB)), gzipped = Measure.gzip(PROSE), tarred = tar(8, Measure.noise(4 * MIB));
        compress("archivers/tar/TarArchiveInputStream", "TarArchiveInputStream.getNextEntry", Measure.disk(d -> Files.write(d.resolve("a.tar"), tarred), p -> { try (TarArchiveInputStream in = new TarArchiveInputStream(new BufferedInputStream(new FileInputStream(p.toFile())))) { while (in.getNextEntry() != null) { } } return null; }));
        compress("archivers/tar/TarArchiveInputStream", "TarArchiveInputStream.read(byte[],int,int)", Measure.disk(d -> Files.write(d.resolve("a.tar"), tarred), p -> { try (TarArchiveInputStream in = new TarArchiveInputStream(new FileInputStream(p.toFile()))) { while (in.getNextEntry() != null) { Measure.drain(in); } } return null; }));
        compress("archivers/tar/TarArchiveOutputStream", "TarArchiveOutputStream.putArchiveEntry", Measure.cpu(100, () -> tar(50, new byte[10])));
        compress("archivers/tar/TarArchiveEntry", "TarArchiveEntry.writeEntryHeader(byte[],ZipEncoding,boolean)", Measure.cpu(100, () -> tar(50, new byte[10])));
        compress("archivers/zip/ZipArchiveOutputStream", "ZipArchiveOutputStream.write(byte[],int,int)", Measure.cpu(1, () -> { try (ZipArchiveOutputStream out = new ZipArchiveOutputStream(new ByteArrayOutputStream())) { out.putArchiveEntry(new ZipArchiveEntry("a")); out.write(PROSE, 0, MIB); out.closeArchiveEntry(); } return null; }));
        compress("compressors/gzip/GzipCompressorInputStream", "GzipCompressorInputStream.read(byte[],int,int)", Measure.cpu(5, () -> Measure.drain(new GzipCompressorInputStream(new ByteArrayInputStream(gzipped)))));
        compress("compressors/gzip/GzipCompressorOutputStream", "GzipCompressorOutputStream.write(byte[],int,int)", Measure.cpu(1, () -> { try (OutputStream out = new GzipCompressorOutputStream(new ByteArrayOutputStream())) { out.write(PROSE, 0, MIB); } return null; }));
        compress("compressors/bzip2/BZip2CompressorInputStream", "BZip2CompressorInputStream.read(byte[],int,int)", Measure.cpu(1, () -> Measure.drain(new BZip2CompressorInputStream(new ByteArrayInputStream(bzipped)))));
        compress("compressors/bzip2/BZip2CompressorOutputStream", "BZip2CompressorOutputStream.write(byte[],int,int)", Measure.cpu(1, () -> bzip(Arrays.copyOf(PROSE, MIB / 2))));
        compress("compressors/lz4/BlockLZ4CompressorOutputStream", "BlockLZ4CompressorOutputStream.write(byte[],int,int)", Measure.cpu(1, () -> { try (OutputStream out = new BlockLZ4CompressorOutputStream(new ByteArrayOutputStream())) { out.write(PROSE, 0, MIB / 2); } return null; }));
    }

    // --- Kryo, okio, okhttp -----------------------------------------------------------------------------------------

    private static void others() {
        Kryo kryo = new Kryo();
        kryo.setRegistrationRequired(false);
        List<Object> value = new ArrayList<>(Arrays.asList(1, "text", 2.5, new ArrayList<>(Arrays.asList(1, 2, 3))));
        String k = "kryo/com/esotericsoftware/kryo/";
        Measure.add("kryo", k + "Kryo.java", "Kryo.writeClassAndObject", Measure.cpu(20000, () -> { Output out = new Output(1000); kryo.writeClassAndObject(out, value); return out; }));
        Measure.add("kryo", k + "io/Output.java", "Output.writeInt(int)", Measure.cpu(20, () -> { Output out = new Output(800000); for (int i = 0; i < 200000; i++) { out.writeInt(i); } return out; }));
        Measure.add("kryo", k + "io/Output.java", "Output.flush", Measure.disk(d -> d.resolve("n"), p -> { try (Output out = new Output(new FileOutputStream(p.toFile()), BIG + 10)) { out.writeBytes(DATA); out.flush(); } return null; }));
        Measure.add("kryo", k + "io/Input.java", "Input.fill", Measure.disk(Measure::big, p -> { try (Input in = new Input(new FileInputStream(p.toFile()), 65536)) { return in.readBytes(BIG); } }));
        Measure.add("okio", "okio/okio/Buffer.java", "Buffer.writeUtf8(String)", Measure.cpu(20000, () -> new Buffer().writeUtf8("some text é")));
        Measure.add("okio", "okio/okio/Buffer.java", "Buffer.readUtf8(long)", Measure.cpu(1000, () -> new Buffer().write(PROSE, 0, 10000).readUtf8(10000)));
        Measure.add("okio", "okio/okio/Okio.java", "Okio.source(File)", Measure.each(p -> Okio.source(p.toFile()).close()));
        Measure.add("okio", "okio/okio/Okio.java", "Okio.sink(File)", Measure.eachOf(Measure::fresh, p -> Okio.sink(p.toFile()).close()));
        Measure.add("okio", "okio/okio/RealBufferedSource.java", "RealBufferedSource.readByteArray()", Measure.disk(Measure::big, p -> { try (BufferedSource s = Okio.buffer(Okio.source(p.toFile()))) { return s.readByteArray(); } }));
        Measure.add("okio", "okio/okio/RealBufferedSink.java", "RealBufferedSink.write(byte[])", Measure.disk(d -> d.resolve("n"), p -> { try (BufferedSink s = Okio.buffer(Okio.sink(p.toFile()))) { s.write(DATA); } return null; }));
        Measure.add("okio", "okio/okio/ByteString.java", "ByteString.sha256", Measure.cpu(3, () -> okio.ByteString.of(PROSE).sha256()));
        OkHttpClient client = new OkHttpClient();
        String h = "okhttp/okhttp3/";
        Measure.add("okhttp", h + "RealCall.java", "RealCall.execute", Measure.repeated(1, p -> client.newCall(new Request.Builder().url(p.url("bytes/100000")).build()).execute().close()));
        Measure.add("okhttp", h + "RealCall.java", "RealCall.getResponseWithInterceptorChain", Measure.repeated(1, p -> client.newCall(new Request.Builder().url(p.url("bytes/100000")).build()).execute().close()));
        Measure.add("okhttp", h + "ResponseBody.java", "ResponseBody.bytes", place -> { Response r = client.newCall(new Request.Builder().url(place.url("bytes/200000")).build()).execute(); place.time(() -> r.body().bytes()); });
        Measure.add("okhttp", h + "HttpUrl.java", "HttpUrl.get(String)", Measure.cpu(5000, () -> HttpUrl.get("http://a.b:80/c?d=e")));
        Measure.add("okhttp", h + "Headers.java", "Headers.of(String...)", Measure.cpu(20000, () -> okhttp3.Headers.of("A", "b", "C", "d")));
    }
}
