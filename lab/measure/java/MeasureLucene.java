import java.io.*;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import org.apache.lucene.store.*;
import org.apache.lucene.util.*;

/** The calls of Lucene's stores. */
final class MeasureLucene {
    private MeasureLucene() { }

    private static void lucene(String file, String name, Measure.Workload workload) {
        Measure.add("lucene", "lucene-core/org/apache/lucene/" + file + ".java", name, workload);
    }

    private interface Opens { Directory open(Path folder) throws Exception; }

    private interface OnFile { void use(Directory directory, String name) throws Exception; }

    /** For each of many small files in a directory of its own: opened before the clock starts, so no folder is cold. */
    private static Measure.Workload each(Opens opens, OnFile use) {
        return place -> {
            List<Path> paths = Measure.many(place.folder);
            place.cool();
            List<Directory> all = new ArrayList<>();
            for (Path path : paths) {
                all.add(opens.open(path.getParent()));
            }
            place.time(() -> {
                for (int i = 0; i < paths.size(); i++) {
                    use.use(all.get(i), paths.get(i).getFileName().toString());
                }
                return null;
            });
            for (Directory directory : all) {
                directory.close();
            }
        };
    }

    private static Measure.Workload reading(Opens opens, Measure.Use<IndexInput> use) {
        return Measure.disk(Measure::big, p -> {
            try (Directory directory = opens.open(p.getParent()); IndexInput in = directory.openInput("a", IOContext.READONCE)) {
                return use.use(in);
            }
        });
    }

    private static Object readAll(org.apache.lucene.store.DataInput in) throws IOException {
        byte[] buffer = new byte[65536];
        for (int i = 0; i < Measure.BIG / buffer.length; i++) {
            in.readBytes(buffer, 0, buffer.length);
        }
        return buffer;
    }

    private static void writeAll(Directory directory, String name) throws IOException {
        try (IndexOutput out = directory.createOutput(name, IOContext.DEFAULT)) {
            out.writeBytes(Measure.DATA, 0, Measure.BIG);
        }
    }

    static void add() {
        Opens nio = NIOFSDirectory::new, mmap = MMapDirectory::new;
        String f = "store/FSDirectory";
        lucene(f, "FSDirectory.open(Path)", Measure.eachOf(Measure::folders, p -> FSDirectory.open(p).close()));
        lucene(f, "FSDirectory.listAll(Path)", Measure.eachOf(Measure::folders, p -> FSDirectory.listAll(p)));
        lucene(f, "FSDirectory.fileLength", each(nio, Directory::fileLength));
        lucene(f, "FSDirectory.createOutput", each(nio, (d, n) -> d.createOutput(n + ".n", IOContext.DEFAULT).close()));
        lucene(f, "FSDirectory.deleteFile", each(nio, Directory::deleteFile));
        lucene(f, "FSDirectory.rename", each(nio, (d, n) -> d.rename(n, n + ".n")));
        lucene(f, "FSDirectory.sync", Measure.disk(d -> d, d -> { try (Directory its = new NIOFSDirectory(d)) { writeAll(its, "n"); its.sync(List.of("n")); } return null; }));
        lucene(f, "FSDirectory.syncMetaData", Measure.disk(d -> d, d -> { try (Directory its = new NIOFSDirectory(d)) { for (int i = 0; i < 30; i++) { its.createOutput("n" + i, IOContext.DEFAULT).close(); its.syncMetaData(); } } return null; }));
        lucene("store/NIOFSDirectory", "NIOFSDirectory.openInput", each(nio, (d, n) -> d.openInput(n, IOContext.READONCE).close()));
        lucene("store/NIOFSDirectory", "NIOFSDirectory.NIOFSIndexInput.readInternal", reading(nio, MeasureLucene::readAll));
        lucene("store/MMapDirectory", "MMapDirectory.openInput", each(mmap, (d, n) -> d.openInput(n, IOContext.READONCE).close()));
        lucene("store/ByteBufferIndexInput", "ByteBufferIndexInput.readBytes", reading(mmap, MeasureLucene::readAll));
        lucene("store/BufferedIndexInput", "BufferedIndexInput.readBytes(byte[],int,int,boolean)", reading(nio, MeasureLucene::readAll));
        lucene("store/BufferedIndexInput", "BufferedIndexInput.refill", reading(nio, in -> { for (int i = 0; i < Measure.BIG / 4096; i++) { in.readByte(); in.skipBytes(4095); } return null; }));
        lucene("store/BufferedChecksumIndexInput", "BufferedChecksumIndexInput.readBytes", reading(nio, in -> readAll(new BufferedChecksumIndexInput(in))));
        lucene("store/Directory", "Directory.copyFrom", Measure.disk(Measure::big, p -> { try (Directory from = new NIOFSDirectory(p.getParent()); Directory to = new NIOFSDirectory(p.resolveSibling("t"))) { to.copyFrom(from, "a", "b", IOContext.DEFAULT); } return null; }));
        lucene("store/OutputStreamIndexOutput", "OutputStreamIndexOutput.writeBytes", Measure.disk(d -> d, d -> { try (Directory its = new NIOFSDirectory(d)) { writeAll(its, "n"); } return null; }));
        lucene("store/OutputStreamIndexOutput", "OutputStreamIndexOutput.writeLong", Measure.cpu(10, () -> { OutputStreamIndexOutput out = new OutputStreamIndexOutput("a", "b", OutputStream.nullOutputStream(), 8192); for (int i = 0; i < 100000; i++) { out.writeLong(i); } out.close(); return out; }));
        lucene("store/NativeFSLockFactory", "NativeFSLockFactory.obtainFSLock", Measure.eachOf(Measure::folders, p -> { try (Directory d = new NIOFSDirectory(p)) { d.obtainLock("write.lock").close(); } }));
        lucene("store/ByteBuffersDataOutput", "ByteBuffersDataOutput.writeBytes(byte[],int,int)", Measure.cpu(20, () -> { ByteBuffersDataOutput out = new ByteBuffersDataOutput(); for (int i = 0; i < 2000; i++) { out.writeBytes(Measure.PROSE, i, 500); } return out; }));
        lucene("store/DataOutput", "DataOutput.writeVLong", Measure.cpu(10, () -> { ByteBuffersDataOutput out = new ByteBuffersDataOutput(); for (int i = 0; i < 100000; i++) { out.writeVLong(i * 1000L); } return out; }));
        lucene("store/DataOutput", "DataOutput.copyBytes", Measure.disk(Measure::big, p -> { try (Directory d = new NIOFSDirectory(p.getParent()); IndexInput in = d.openInput("a", IOContext.READONCE); IndexOutput out = d.createOutput("n", IOContext.DEFAULT)) { out.copyBytes(in, Measure.BIG); } return null; }));
        lucene("store/InputStreamDataInput", "InputStreamDataInput.readBytes", Measure.disk(Measure::big, p -> { try (InputStreamDataInput in = new InputStreamDataInput(new FileInputStream(p.toFile()))) { return readAll(in); } }));
        lucene("store/RateLimiter", "RateLimiter.SimpleRateLimiter.pause", place -> { RateLimiter limiter = new RateLimiter.SimpleRateLimiter(100); limiter.pause(1); place.time(() -> limiter.pause(4 * Measure.MIB)); });
        lucene("util/IOUtils", "IOUtils.fsync", Measure.disk(Measure::many, all -> { for (Path p : all.subList(0, 50)) { Files.write(p, new byte[5000]); IOUtils.fsync(p, false); } return null; }));
        lucene("util/IOUtils", "IOUtils.rm(Path...)", Measure.disk(d -> Measure.folderOfMany(Files.createDirectory(d.resolve("s"))), p -> { IOUtils.rm(p); return null; }));
        lucene("util/OfflineSorter", "OfflineSorter.sort", Measure.disk(MeasureLucene::unsorted, d -> { try (Directory its = new NIOFSDirectory(d)) { return new OfflineSorter(its, "s").sort("in"); } }));
        lucene("util/BytesRefHash", "BytesRefHash.add", Measure.cpu(2, () -> { BytesRefHash h = new BytesRefHash(); for (int i = 0; i < 50000; i++) { h.add(new BytesRef("word" + i % 5000)); } return h; }));
        lucene("util/FixedBitSet", "FixedBitSet.cardinality", Measure.cpu(500, () -> new FixedBitSet(1000000).cardinality()));
        lucene("util/StringHelper", "StringHelper.murmurhash3_x86_32(byte[],int,int,int)", Measure.cpu(5, () -> StringHelper.murmurhash3_x86_32(Measure.PROSE, 0, Measure.PROSE.length, 1)));
    }

    private static Path unsorted(Path folder) throws IOException {
        Random chance = new Random(3);
        try (Directory its = new NIOFSDirectory(folder); IndexOutput out = its.createOutput("in", IOContext.DEFAULT); OfflineSorter.ByteSequencesWriter writer = new OfflineSorter.ByteSequencesWriter(out)) {
            byte[] bytes = new byte[40];
            for (int i = 0; i < 300000; i++) {
                chance.nextBytes(bytes);
                writer.write(bytes);
            }
            org.apache.lucene.codecs.CodecUtil.writeFooter(out);
        }
        return folder;
    }
}
