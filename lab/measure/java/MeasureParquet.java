import java.io.*;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.bytes.*;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter;
import org.apache.parquet.column.values.delta.*;
import org.apache.parquet.column.values.deltastrings.DeltaByteArrayWriter;
import org.apache.parquet.column.values.plain.*;
import org.apache.parquet.column.values.rle.RunLengthBitPackingHybridEncoder;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroupFactory;
import org.apache.parquet.hadoop.*;
import org.apache.parquet.hadoop.example.*;
import org.apache.parquet.hadoop.metadata.*;
import org.apache.parquet.hadoop.util.*;
import org.apache.parquet.io.*;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.*;

/** The calls of Parquet. */
final class MeasureParquet {
    private MeasureParquet() { }

    private static Path at(java.nio.file.Path path, String name) { return new Path(path.resolve(name).toString()); }

    private static Path at(java.nio.file.Path path) { return new Path(path.toString()); }

    private static void parquet(String module, String file, String name, Measure.Workload workload) {
        Measure.add("parquet", module + "/org/apache/parquet/" + file + ".java", name, workload);
    }

    private static final String SCHEMA = "message m { required int64 a; required binary b (UTF8); required double c; }";

    private static Path rows(Configuration conf, Path path, int count) throws IOException {
        MessageType schema = MessageTypeParser.parseMessageType(SCHEMA);
        SimpleGroupFactory groups = new SimpleGroupFactory(schema);
        Random chance = new Random(1);
        try (ParquetWriter<Group> writer = ExampleParquetWriter.builder(path).withConf(conf).withType(schema).build()) {
            for (int i = 0; i < count; i++) {
                writer.write(groups.newGroup().append("a", chance.nextLong()).append("b", "text" + chance.nextInt()).append("c", chance.nextDouble()));
            }
        }
        return path;
    }

    private static final Map<String, byte[]> MILLION = new HashMap<>();

    /** A file of 31 MB and its checksums, written by Parquet once. */
    private static Path million(Configuration conf, java.nio.file.Path folder) throws IOException {
        if (MILLION.isEmpty()) {
            rows(conf, at(folder, "p"), 1000000);
            for (String name : List.of("p", ".p.crc")) {
                MILLION.put(name, java.nio.file.Files.readAllBytes(folder.resolve(name)));
            }
        }
        for (Map.Entry<String, byte[]> its : MILLION.entrySet()) {
            java.nio.file.Files.write(folder.resolve(its.getKey()), its.getValue());
        }
        return at(folder, "p");
    }

    private static List<Path> few(Configuration conf, java.nio.file.Path folder) throws IOException {
        List<Path> all = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            java.nio.file.Path its = java.nio.file.Files.createDirectory(folder.resolve("d" + i));
            all.add(rows(conf, at(its, "p"), 100));
        }
        return all;
    }

    /** The file is opened, and its footer read, before the clock starts. */
    private static Measure.Workload opened(Configuration conf, Measure.Use<ParquetFileReader> use) {
        return place -> {
            Path path = million(conf, place.folder);
            place.cool();
            try (ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf))) {
                place.settle();
                place.time(() -> use.use(reader));
            }
        };
    }

    private interface OnColumn { Object use(ParquetFileReader reader, ColumnChunkMetaData column) throws Exception; }

    private static Measure.Workload columns(Configuration conf, OnColumn use) {
        return place -> {
            List<Path> paths = few(conf, place.folder);
            place.cool();
            List<ParquetFileReader> readers = new ArrayList<>();
            for (Path path : paths) {
                readers.add(ParquetFileReader.open(HadoopInputFile.fromPath(path, conf)));
            }
            place.settle();
            place.time(() -> {
                for (ParquetFileReader reader : readers) {
                    for (ColumnChunkMetaData column : reader.getRowGroups().get(0).getColumns()) {
                        use.use(reader, column);
                    }
                }
                return null;
            });
            for (ParquetFileReader reader : readers) {
                reader.close();
            }
        };
    }

    private static byte[] deltas() throws IOException {
        DeltaBinaryPackingValuesWriterForLong writer = new DeltaBinaryPackingValuesWriterForLong(4096, 65536, HeapByteBufferAllocator.getInstance());
        for (int i = 0; i < 200000; i++) {
            writer.writeLong(i * 3L);
        }
        return writer.getBytes().toByteArray();
    }

    static void add() throws Exception {
        Configuration conf = new Configuration(false);
        conf.set("fs.file.impl", LocalFileSystem.class.getName());
        MessageType schema = MessageTypeParser.parseMessageType(SCHEMA);
        parquet("parquet-hadoop", "hadoop/ParquetWriter", "ParquetWriter.write", Measure.disk(d -> at(d, "p"), p -> rows(conf, p, 100000)));
        parquet("parquet-hadoop", "hadoop/ParquetReader", "ParquetReader.read()", Measure.disk(d -> rows(conf, at(d, "p"), 100000), p -> { try (ParquetReader<Group> r = ParquetReader.builder(new GroupReadSupport(), p).withConf(conf).build()) { while (r.read() != null) { } } return null; }));
        parquet("parquet-hadoop", "hadoop/ParquetFileReader", "ParquetFileReader.open(InputFile)", Measure.disk(d -> few(conf, d), all -> { for (Path p : all) { ParquetFileReader.open(HadoopInputFile.fromPath(p, conf)).close(); } return null; }));
        parquet("parquet-hadoop", "hadoop/ParquetFileReader", "ParquetFileReader.readNextRowGroup", Measure.disk(d -> rows(conf, at(d, "p"), 400000), p -> { try (ParquetFileReader r = ParquetFileReader.open(HadoopInputFile.fromPath(p, conf))) { while (r.readNextRowGroup() != null) { } } return null; }));
        parquet("parquet-hadoop", "hadoop/util/HadoopInputFile", "HadoopInputFile.fromPath", Measure.each(p -> HadoopInputFile.fromPath(at(p), conf)));
        parquet("parquet-hadoop", "hadoop/util/HadoopInputFile", "HadoopInputFile.newStream", Measure.each(p -> HadoopInputFile.fromPath(at(p), conf).newStream().close()));
        parquet("parquet-column", "schema/MessageTypeParser", "MessageTypeParser.parseMessageType", Measure.cpu(2000, () -> MessageTypeParser.parseMessageType(SCHEMA)));
        parquet("parquet-column", "column/values/delta/DeltaBinaryPackingValuesWriterForLong", "DeltaBinaryPackingValuesWriterForLong.writeLong", Measure.cpu(5, () -> { DeltaBinaryPackingValuesWriterForLong w = new DeltaBinaryPackingValuesWriterForLong(4096, 65536, HeapByteBufferAllocator.getInstance()); for (int i = 0; i < 200000; i++) { w.writeLong(i * 3L); } return w.getBytes(); }));
        parquet("parquet-column", "column/values/plain/PlainValuesWriter", "PlainValuesWriter.writeDouble", Measure.cpu(5, () -> { PlainValuesWriter w = new PlainValuesWriter(4096, 65536, HeapByteBufferAllocator.getInstance()); for (int i = 0; i < 200000; i++) { w.writeDouble(i); } return w.getBytes(); }));
        parquet("parquet-column", "column/values/rle/RunLengthBitPackingHybridEncoder", "RunLengthBitPackingHybridEncoder.writeInt", Measure.cpu(5, () -> { RunLengthBitPackingHybridEncoder w = new RunLengthBitPackingHybridEncoder(8, 4096, 65536, HeapByteBufferAllocator.getInstance()); for (int i = 0; i < 200000; i++) { w.writeInt(i / 7 % 200); } return w.toBytes(); }));
        parquet("parquet-column", "column/values/bloomfilter/BlockSplitBloomFilter", "BlockSplitBloomFilter.insertHash", Measure.cpu(5, () -> { BlockSplitBloomFilter f = new BlockSplitBloomFilter(65536); for (int i = 0; i < 300000; i++) { f.insertHash(i * 0x9E3779B97F4A7C15L); } return f; }));
        parquet("parquet-common", "bytes/BytesUtils", "BytesUtils.writeUnsignedVarInt(int,OutputStream)", Measure.cpu(10, () -> { ByteArrayOutputStream out = new ByteArrayOutputStream(); for (int i = 0; i < 100000; i++) { BytesUtils.writeUnsignedVarInt(i, out); } return out; }));
        parquet("parquet-common", "bytes/CapacityByteArrayOutputStream", "CapacityByteArrayOutputStream.write(byte[],int,int)", Measure.cpu(20, () -> { CapacityByteArrayOutputStream out = new CapacityByteArrayOutputStream(4096, Measure.MIB, HeapByteBufferAllocator.getInstance()); for (int i = 0; i < 2000; i++) { out.write(Measure.PROSE, i, 500); } return out; }));
        String reader = "hadoop/ParquetFileReader", writer = "hadoop/ParquetFileWriter";
        parquet("parquet-hadoop", reader, "ParquetFileReader.readFooter(InputFile,ParquetReadOptions,SeekableInputStream)", Measure.disk(d -> few(conf, d), all -> { for (Path p : all) { HadoopInputFile file = HadoopInputFile.fromPath(p, conf); try (SeekableInputStream in = file.newStream()) { ParquetFileReader.readFooter(file, ParquetReadOptions.builder().build(), in); } } return null; }));
        parquet("parquet-hadoop", reader, "ParquetFileReader.readAllFootersInParallel(Configuration,List,boolean)", Measure.disk(d -> few(conf, d), all -> { List<FileStatus> its = new ArrayList<>(); for (Path p : all) { its.add(p.getFileSystem(conf).getFileStatus(p)); } return ParquetFileReader.readAllFootersInParallel(conf, its, false); }));
        parquet("parquet-hadoop", reader, "ParquetFileReader.readRowGroup", opened(conf, r -> r.readRowGroup(0)));
        parquet("parquet-hadoop", reader, "ParquetFileReader.internalReadRowGroup", opened(conf, r -> r.readRowGroup(0)));
        parquet("parquet-hadoop", reader, "ParquetFileReader.readNextFilteredRowGroup", opened(conf, r -> r.readNextFilteredRowGroup()));
        parquet("parquet-hadoop", reader, "ParquetFileReader.readAllPartsVectoredOrNormal", opened(conf, r -> r.readRowGroup(0)));
        parquet("parquet-hadoop", reader, "ParquetFileReader.ConsecutivePartList.readAll", opened(conf, r -> r.readRowGroup(0)));
        parquet("parquet-hadoop", reader, "ParquetFileReader.skipNextRowGroup", opened(conf, r -> r.skipNextRowGroup()));
        parquet("parquet-hadoop", reader, "ParquetFileReader.readColumnIndex", columns(conf, (r, c) -> r.readColumnIndex(c)));
        parquet("parquet-hadoop", reader, "ParquetFileReader.readOffsetIndex", columns(conf, (r, c) -> r.readOffsetIndex(c)));
        parquet("parquet-hadoop", "hadoop/ColumnChunkPageReadStore", "ColumnChunkPageReadStore.ColumnChunkPageReader.readPage", Measure.disk(d -> rows(conf, at(d, "p"), 400000), p -> { try (ParquetFileReader r = ParquetFileReader.open(HadoopInputFile.fromPath(p, conf))) { PageReadStore pages = r.readNextRowGroup(); for (ColumnDescriptor c : schema.getColumns()) { while (pages.getPageReader(c).readPage() != null) { } } } return null; }));
        parquet("parquet-hadoop", writer, "ParquetFileWriter.appendFile(InputFile)", Measure.disk(d -> million(conf, d), p -> { ParquetFileWriter w = new ParquetFileWriter(HadoopOutputFile.fromPath(p.suffix(".n"), conf), schema, ParquetFileWriter.Mode.CREATE, 1 << 27, 0); w.start(); w.appendFile(HadoopInputFile.fromPath(p, conf)); w.end(new HashMap<>()); w.close(); return null; }));
        parquet("parquet-hadoop", writer, "ParquetFileWriter.appendRowGroup(SeekableInputStream,BlockMetaData,boolean)", Measure.disk(d -> million(conf, d), p -> { ParquetFileWriter w = new ParquetFileWriter(HadoopOutputFile.fromPath(p.suffix(".n"), conf), schema, ParquetFileWriter.Mode.CREATE, 1 << 27, 0); w.start(); w.appendFile(HadoopInputFile.fromPath(p, conf)); w.end(new HashMap<>()); w.close(); return null; }));
        parquet("parquet-hadoop", writer, "ParquetFileWriter.<init>(OutputFile,MessageType,Mode,long,int)", Measure.eachOf(d -> Measure.fresh(d).subList(0, 15), p -> new ParquetFileWriter(HadoopOutputFile.fromPath(at(p), conf), schema, ParquetFileWriter.Mode.CREATE, 1 << 27, 0).close()));
        parquet("parquet-hadoop", writer, "ParquetFileWriter.end", place -> { List<ParquetFileWriter> all = new ArrayList<>(); for (java.nio.file.Path p : Measure.fresh(place.folder).subList(0, 15)) { ParquetFileWriter w = new ParquetFileWriter(HadoopOutputFile.fromPath(at(p), conf), schema, ParquetFileWriter.Mode.CREATE, 1 << 27, 0); w.start(); all.add(w); } place.settle(); place.time(() -> { for (ParquetFileWriter w : all) { w.end(new HashMap<>()); } return null; }); });
        parquet("parquet-hadoop", "hadoop/util/HadoopOutputFile", "HadoopOutputFile.create", Measure.eachOf(d -> Measure.fresh(d).subList(0, 15), p -> HadoopOutputFile.fromPath(at(p), conf).create(1 << 20).close()));
        parquet("parquet-hadoop", "hadoop/util/HadoopOutputFile", "HadoopOutputFile.createOrOverwrite", Measure.eachOf(d -> Measure.many(d).subList(0, 15), p -> HadoopOutputFile.fromPath(at(p), conf).createOrOverwrite(1 << 20).close()));
        parquet("parquet-hadoop", "hadoop/util/HadoopPositionOutputStream", "HadoopPositionOutputStream.write(byte[],int,int)", Measure.disk(d -> at(d, "n"), p -> { try (PositionOutputStream out = HadoopOutputFile.fromPath(p, conf).create(1 << 20)) { out.write(Measure.DATA, 0, Measure.BIG); } return null; }));
        parquet("parquet-common", "io/DelegatingSeekableInputStream", "DelegatingSeekableInputStream.readFully(InputStream,byte[],int,int)", Measure.disk(Measure::big, p -> { try (SeekableInputStream in = HadoopInputFile.fromPath(at(p), conf).newStream()) { in.readFully(new byte[Measure.BIG], 0, Measure.BIG); } return null; }));
        parquet("parquet-common", "io/DelegatingSeekableInputStream", "DelegatingSeekableInputStream.readFully(ByteBuffer)", Measure.disk(Measure::big, p -> { try (SeekableInputStream in = HadoopInputFile.fromPath(at(p), conf).newStream()) { in.readFully(ByteBuffer.allocate(Measure.BIG)); } return null; }));
        parquet("parquet-common", "io/LocalInputFile", "LocalInputFile.getLength", Measure.each(p -> new LocalInputFile(p).getLength()));
        parquet("parquet-common", "io/LocalInputFile", "LocalInputFile.newStream", Measure.each(p -> new LocalInputFile(p).newStream().close()));
        parquet("parquet-common", "io/LocalOutputFile", "LocalOutputFile.create", Measure.eachOf(Measure::fresh, p -> new LocalOutputFile(p).create(1 << 20).close()));
        parquet("parquet-common", "io/LocalOutputFile", "LocalOutputFile.LocalPositionOutputStream.write(byte[],int,int)", Measure.disk(d -> d.resolve("n"), p -> { try (PositionOutputStream out = new LocalOutputFile(p).create(1 << 20)) { out.write(Measure.DATA, 0, Measure.BIG); } return null; }));
        parquet("parquet-common", "bytes/BytesInput", "BytesInput.StreamBytesInput.toByteArray", Measure.disk(Measure::big, p -> { try (InputStream in = new FileInputStream(p.toFile())) { return BytesInput.from(in, Measure.BIG).toByteArray(); } }));
        parquet("parquet-common", "bytes/BytesInput", "BytesInput.ByteArrayBytesInput.writeAllTo", Measure.disk(d -> d.resolve("n"), p -> { try (OutputStream out = new FileOutputStream(p.toFile())) { BytesInput.from(Measure.DATA).writeAllTo(out); } return null; }));
        parquet("parquet-common", "bytes/BytesInput", "BytesInput.SequenceBytesIn.writeAllTo", Measure.cpu(50, () -> { ByteArrayOutputStream out = new ByteArrayOutputStream(); BytesInput its = BytesInput.from(Measure.PROSE, 0, 1000); BytesInput[] all = new BytesInput[200]; Arrays.fill(all, its); BytesInput.concat(all).writeAllTo(out); return out; }));
        parquet("parquet-common", "bytes/LittleEndianDataOutputStream", "LittleEndianDataOutputStream.writeLong", Measure.cpu(20, () -> { LittleEndianDataOutputStream out = new LittleEndianDataOutputStream(new ByteArrayOutputStream()); for (int i = 0; i < 50000; i++) { out.writeLong(i); } return out; }));
        CodecFactory codecs = new CodecFactory(conf, 1 << 16);
        byte[] squeezed = codecs.getCompressor(CompressionCodecName.GZIP).compress(BytesInput.from(Measure.PROSE, 0, Measure.MIB)).toByteArray();
        parquet("parquet-hadoop", "hadoop/CodecFactory", "CodecFactory.HeapBytesCompressor.compress", Measure.cpu(1, () -> codecs.getCompressor(CompressionCodecName.GZIP).compress(BytesInput.from(Measure.PROSE, 0, Measure.MIB))));
        parquet("parquet-hadoop", "hadoop/CodecFactory", "CodecFactory.HeapBytesDecompressor.decompress(BytesInput,int)", Measure.cpu(5, () -> codecs.getDecompressor(CompressionCodecName.GZIP).decompress(BytesInput.from(squeezed), Measure.MIB).toByteArray()));
        parquet("parquet-hadoop", "hadoop/codec/SnappyCompressor", "SnappyCompressor.compress", Measure.cpu(10, () -> codecs.getCompressor(CompressionCodecName.SNAPPY).compress(BytesInput.from(Measure.PROSE, 0, Measure.MIB))));
        byte[] plain = new byte[8 * 200000];
        parquet("parquet-column", "column/values/plain/PlainValuesReader", "PlainValuesReader.LongPlainValuesReader.readLong", Measure.cpu(10, () -> { PlainValuesReader.LongPlainValuesReader r = new PlainValuesReader.LongPlainValuesReader(); r.initFromPage(200000, ByteBufferInputStream.wrap(ByteBuffer.wrap(plain))); long all = 0; for (int i = 0; i < 200000; i++) { all += r.readLong(); } return all; }));
        byte[] delta = deltas();
        parquet("parquet-column", "column/values/delta/DeltaBinaryPackingValuesReader", "DeltaBinaryPackingValuesReader.initFromPage", Measure.cpu(5, () -> { DeltaBinaryPackingValuesReader r = new DeltaBinaryPackingValuesReader(); r.initFromPage(200000, ByteBufferInputStream.wrap(ByteBuffer.wrap(delta))); return r.readLong(); }));
        parquet("parquet-column", "column/values/deltastrings/DeltaByteArrayWriter", "DeltaByteArrayWriter.writeBytes", Measure.cpu(3, () -> { DeltaByteArrayWriter w = new DeltaByteArrayWriter(4096, 65536, HeapByteBufferAllocator.getInstance()); for (int i = 0; i < 50000; i++) { w.writeBytes(Binary.fromString("text " + i)); } return w.getBytes(); }));
        parquet("parquet-column", "io/api/Binary", "Binary.fromString", Measure.cpu(50000, () -> Binary.fromString("some text").length()));
        parquet("parquet-column", "column/statistics/BinaryStatistics", "BinaryStatistics.updateStats(Binary)", Measure.cpu(5, () -> { org.apache.parquet.column.statistics.BinaryStatistics s = new org.apache.parquet.column.statistics.BinaryStatistics(); for (int i = 0; i < 50000; i++) { s.updateStats(Binary.fromString("t" + i)); } return s; }));
        parquet("parquet-column", "schema/MessageType", "MessageType.getColumns", Measure.cpu(20000, schema::getColumns));
    }
}
