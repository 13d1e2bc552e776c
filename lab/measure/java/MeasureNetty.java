import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.*;
import io.netty.channel.*;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.*;
import io.netty.handler.codec.*;
import io.netty.handler.codec.base64.Base64;
import io.netty.handler.codec.compression.*;
import io.netty.handler.codec.http.*;
import io.netty.handler.codec.http.multipart.*;
import io.netty.handler.stream.*;
import io.netty.util.CharsetUtil;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.*;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** The calls of Netty. */
final class MeasureNetty {
    private static final byte[] PROSE = Measure.PROSE;

    private MeasureNetty() { }

    private static void netty(String module, String file, String name, Measure.Workload workload) {
        Measure.add("netty", "netty-" + module + "/io/netty/" + file + ".java", name, workload);
    }

    @ChannelHandler.Sharable
    private static final class Nothing extends ChannelInboundHandlerAdapter { }

    private static Channel connected(EventLoopGroup group, Measure.Place place, ChannelHandler handler) throws Exception {
        return new Bootstrap().group(group).channel(NioSocketChannel.class).handler(handler).connect(place.address("lines")).sync().channel();
    }

    private interface OnGroup { void run(Measure.Place place, EventLoopGroup group) throws Exception; }

    private static Measure.Workload grouped(OnGroup workload) {
        return place -> {
            EventLoopGroup group = new NioEventLoopGroup(1);
            try {
                workload.run(place, group);
            } finally {
                group.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
            }
        };
    }

    private static ByteBuf ascii(String text) { return Unpooled.copiedBuffer(text, CharsetUtil.US_ASCII); }

    /** Opens what the event loop calls of a channel, which never blocks. */
    private static final class Probe extends NioSocketChannel {
        final CompletableFuture<Object> written = new CompletableFuture<>();
        Measure.Place timed;

        boolean connectNow(java.net.SocketAddress address) throws Exception { return doConnect(address, null); }

        int readNow(ByteBuf to) throws Exception { return doReadBytes(to); }

        int writeNow(ByteBuf from) throws Exception { return doWriteBytes(from); }

        @Override
        protected void doWrite(ChannelOutboundBuffer in) throws Exception {
            Measure.Place place = timed;
            timed = null;
            if (place == null) {
                super.doWrite(in);
                return;
            }
            place.time(() -> { super.doWrite(in); return null; });
            written.complete(this);
        }
    }

    private static final class Reply extends ChannelInboundHandlerAdapter {
        final CompletableFuture<Object> seen = new CompletableFuture<>();

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            io.netty.util.ReferenceCountUtil.release(message);
            seen.complete(this);
        }
    }

    private static Probe registered(EventLoopGroup group, Probe probe) throws Exception {
        probe.config().setAutoRead(false);
        group.register(probe).sync();
        return probe;
    }

    /** A connection whose peer was told something and had the time to answer. */
    private static Probe answered(EventLoopGroup group, Measure.Place place, String text) throws Exception {
        Probe probe = registered(group, new Probe());
        probe.connect(place.address("lines")).sync();
        probe.writeAndFlush(ascii(text)).sync();
        Thread.sleep(80);
        return probe;
    }

    /** One run on the event loop's own thread, as in production. */
    private static void onLoop(Measure.Place place, EventLoopGroup group, Measure.Call call) throws Exception {
        group.next().submit(() -> { place.time(call); return null; }).get();
    }

    private static Measure.Workload native_(Measure.Workload workload) {
        return place -> {
            io.netty.channel.epoll.Epoll.ensureAvailability();
            workload.run(place);
        };
    }

    private static DiskFileUpload upload(Measure.Place place) {
        return new DiskFileUpload("a", "b", "text/plain", "binary", CharsetUtil.UTF_8, Measure.BIG, place.folder.toString(), false);
    }

    static void add() {
        byte[] request = ("GET /a?b=c HTTP/1.1\r\nHost: a\r\n" + "X-Some: header\r\n".repeat(10) + "\r\n").getBytes(CharsetUtil.US_ASCII);
        ChannelHandler nothing = new Nothing();
        netty("buffer", "buffer/ByteBufUtil", "ByteBufUtil.hexDump(ByteBuf)", Measure.cpu(100, () -> ByteBufUtil.hexDump(Unpooled.wrappedBuffer(PROSE, 0, 10000))));
        netty("buffer", "buffer/ByteBufUtil", "ByteBufUtil.writeUtf8(ByteBuf,CharSequence)", Measure.cpu(5000, () -> { ByteBuf b = Unpooled.buffer(); ByteBufUtil.writeUtf8(b, "some text é"); return b; }));
        netty("buffer", "buffer/AbstractByteBuf", "AbstractByteBuf.writeLong", Measure.cpu(10, () -> { ByteBuf b = Unpooled.buffer(); for (int i = 0; i < 50000; i++) { b.writeLong(i); } return b; }));
        netty("buffer", "buffer/AbstractByteBuf", "AbstractByteBuf.readBytes(byte[])", Measure.cpu(1000, () -> { byte[] to = new byte[10000]; Unpooled.wrappedBuffer(PROSE).readBytes(to); return to; }));
        netty("buffer", "buffer/PooledByteBufAllocator", "PooledByteBufAllocator.newHeapBuffer", Measure.cpu(20000, () -> PooledByteBufAllocator.DEFAULT.heapBuffer(1000).release()));
        netty("buffer", "buffer/CompositeByteBuf", "CompositeByteBuf.addComponent(boolean,ByteBuf)", Measure.cpu(2000, () -> Unpooled.compositeBuffer().addComponent(true, ascii("a")).addComponent(true, ascii("b"))));
        netty("codec", "handler/codec/base64/Base64", "Base64.encode(ByteBuf)", Measure.cpu(5, () -> Base64.encode(Unpooled.wrappedBuffer(PROSE, 0, Measure.MIB))));
        netty("codec", "handler/codec/LineBasedFrameDecoder", "LineBasedFrameDecoder.decode(ChannelHandlerContext,ByteBuf)", Measure.cpu(20, () -> { EmbeddedChannel c = new EmbeddedChannel(new LineBasedFrameDecoder(100)); c.writeInbound(ascii("a line\n".repeat(3000))); return c.releaseInbound(); }));
        netty("codec", "handler/codec/LengthFieldPrepender", "LengthFieldPrepender.encode", Measure.cpu(200, () -> { EmbeddedChannel c = new EmbeddedChannel(new LengthFieldPrepender(4)); for (int i = 0; i < 50; i++) { c.writeOutbound(ascii("abc")); } return c.releaseOutbound(); }));
        netty("codec", "handler/codec/compression/JdkZlibEncoder", "JdkZlibEncoder.encode", Measure.cpu(2, () -> { EmbeddedChannel c = new EmbeddedChannel(new JdkZlibEncoder()); c.writeOutbound(Unpooled.wrappedBuffer(PROSE, 0, Measure.MIB)); c.finishAndReleaseAll(); return null; }));
        netty("codec", "handler/codec/compression/Snappy", "Snappy.encode(ByteBuf,ByteBuf,int)", Measure.cpu(20, () -> { ByteBuf b = Unpooled.buffer(); new Snappy().encode(Unpooled.wrappedBuffer(PROSE, 0, 30000), b, 30000); return b; }));
        netty("codec", "handler/codec/compression/Bzip2Encoder", "Bzip2Encoder.encode", Measure.cpu(1, () -> { EmbeddedChannel c = new EmbeddedChannel(new Bzip2Encoder(1)); c.writeOutbound(Unpooled.wrappedBuffer(PROSE, 0, Measure.MIB)); c.finishAndReleaseAll(); return null; }));
        netty("codec-http", "handler/codec/http/HttpObjectDecoder", "HttpObjectDecoder.decode", Measure.cpu(500, () -> { EmbeddedChannel c = new EmbeddedChannel(new HttpRequestDecoder()); c.writeInbound(Unpooled.wrappedBuffer(request)); return c.releaseInbound(); }));
        netty("codec-http", "handler/codec/http/HttpObjectEncoder", "HttpObjectEncoder.encode", Measure.cpu(500, () -> { EmbeddedChannel c = new EmbeddedChannel(new HttpResponseEncoder()); c.writeOutbound(new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK)); return c.releaseOutbound(); }));
        netty("codec-http", "handler/codec/http/QueryStringDecoder", "QueryStringDecoder.parameters", Measure.cpu(3000, () -> new QueryStringDecoder("/a?b=c&d=e%20f&g=h").parameters()));
        netty("codec-http", "handler/codec/http/DefaultHttpHeaders", "DefaultHttpHeaders.add(String,Object)", Measure.cpu(3000, () -> new DefaultHttpHeaders().add("A", "b").add("C", "d")));
        netty("codec-http", "handler/codec/http/cookie/ServerCookieDecoder", "ServerCookieDecoder.decode(String)", Measure.cpu(5000, () -> io.netty.handler.codec.http.cookie.ServerCookieDecoder.LAX.decode("a=b; c=d; e=f")));
        netty("common", "util/internal/StringUtil", "StringUtil.escapeCsv(CharSequence)", Measure.cpu(20000, () -> io.netty.util.internal.StringUtil.escapeCsv("a,\"b\",c")));
        netty("common", "util/AsciiString", "AsciiString.hashCode()", Measure.cpu(50000, () -> new io.netty.util.AsciiString("Content-Length").hashCode()));
        netty("transport", "bootstrap/Bootstrap", "Bootstrap.connect(SocketAddress)", grouped((p, g) -> { Bootstrap b = new Bootstrap().group(g).channel(NioSocketChannel.class).handler(nothing); p.time(() -> { for (int i = 0; i < 5; i++) { b.connect(p.address("lines")).sync().channel().close(); } return null; }); }));
        netty("transport", "channel/AbstractChannel", "AbstractChannel.writeAndFlush(Object)", grouped((p, g) -> { Channel c = connected(g, p, nothing); c.writeAndFlush(ascii("SINK 4194304\n")).sync(); p.time(() -> c.writeAndFlush(Unpooled.wrappedBuffer(PROSE)).sync()); c.close().sync(); }));
        netty("transport", "channel/DefaultFileRegion", "DefaultFileRegion.transferTo", place -> { java.nio.file.Path path = Measure.big(place.folder); place.cool(); try (FileOutputStream out = new FileOutputStream(path + ".n")) { DefaultFileRegion region = new DefaultFileRegion(path.toFile(), 0, Measure.BIG); place.time(() -> { for (long at = 0; at < Measure.BIG; ) { at += region.transferTo(out.getChannel(), at); } return null; }); region.release(); } });
        netty("handler", "handler/stream/ChunkedFile", "ChunkedFile.readChunk(ByteBufAllocator)", place -> { java.nio.file.Path path = Measure.big(place.folder); place.cool(); ChunkedFile file = new ChunkedFile(path.toFile(), 65536); place.time(() -> { while (!file.isEndOfInput()) { file.readChunk(UnpooledByteBufAllocator.DEFAULT).release(); } return null; }); file.close(); });
        netty("handler", "handler/stream/ChunkedNioFile", "ChunkedNioFile.readChunk(ByteBufAllocator)", place -> { java.nio.file.Path path = Measure.big(place.folder); place.cool(); ChunkedNioFile file = new ChunkedNioFile(path.toFile(), 65536); place.time(() -> { while (!file.isEndOfInput()) { file.readChunk(UnpooledByteBufAllocator.DEFAULT).release(); } return null; }); file.close(); });
        String nio = "channel/socket/nio/NioSocketChannel";
        netty("transport", nio, "NioSocketChannel.doConnect", grouped((p, g) -> { List<Probe> all = new ArrayList<>(); for (int i = 0; i < 50; i++) { all.add(registered(g, new Probe())); } onLoop(p, g, () -> { for (Probe c : all) { c.connectNow(p.address("lines")); } return null; }); for (Probe c : all) { c.close(); } }));
        netty("transport", nio, "NioSocketChannel.doReadBytes", grouped((p, g) -> { Probe c = answered(g, p, "SEND 100000\n"); onLoop(p, g, () -> { ByteBuf b = Unpooled.directBuffer(200000); while (b.readableBytes() < 50000 && c.readNow(b) > 0) { } return b; }); c.close().sync(); }));
        netty("transport", nio, "NioSocketChannel.doWriteBytes", grouped((p, g) -> { Probe c = answered(g, p, "SINK 4194304\n"); onLoop(p, g, () -> { for (int i = 0; i < 200; i++) { c.writeNow(Unpooled.wrappedBuffer(PROSE, 0, 1000)); } return null; }); c.close().sync(); }));
        netty("transport", nio, "NioSocketChannel.doWrite", grouped((p, g) -> { Probe c = answered(g, p, "SINK 4194304\n"); c.timed = p; c.writeAndFlush(Unpooled.copiedBuffer(PROSE)); c.written.get(20, TimeUnit.SECONDS); c.close().sync(); }));
        netty("transport", "channel/nio/AbstractNioByteChannel", "AbstractNioByteChannel.NioByteUnsafe.read", grouped((p, g) -> { Probe c = answered(g, p, "SEND 100000\n"); onLoop(p, g, () -> { c.unsafe().read(); return null; }); c.close().sync(); }));
        netty("transport", "channel/AbstractChannel", "AbstractChannel.close()", grouped((p, g) -> { List<Channel> all = new ArrayList<>(); for (int i = 0; i < 50; i++) { all.add(connected(g, p, nothing)); } onLoop(p, g, () -> { for (Channel c : all) { c.close(); } return null; }); }));
        netty("transport", "channel/nio/NioEventLoop", "NioEventLoop.select(long)", grouped((p, g) -> { Channel c = connected(g, p, new Reply()); p.time(() -> { Reply r = c.pipeline().get(Reply.class); c.writeAndFlush(ascii("hello\n")); r.seen.get(5, TimeUnit.SECONDS); return null; }); c.close().sync(); }));
        netty("transport", "channel/DefaultFileRegion", "DefaultFileRegion.open", Measure.each(f -> { DefaultFileRegion r = new DefaultFileRegion(f.toFile(), 0, 100); r.open(); r.release(); }));
        netty("transport", "channel/DefaultChannelPipeline", "DefaultChannelPipeline.addLast(ChannelHandler)", Measure.cpu(2000, () -> new EmbeddedChannel().pipeline().addLast(nothing)));
        String sockets = "util/internal/SocketUtils";
        netty("common", sockets, "SocketUtils.connect(Socket,SocketAddress,int)", Measure.repeated(5, p -> { try (Socket s = new Socket()) { io.netty.util.internal.SocketUtils.connect(s, p.address("lines"), 1000); } }));
        netty("common", sockets, "SocketUtils.connect(SocketChannel,SocketAddress)", Measure.repeated(5, p -> { try (SocketChannel s = SocketChannel.open()) { io.netty.util.internal.SocketUtils.connect(s, p.address("lines")); } }));
        netty("common", sockets, "SocketUtils.accept", place -> { try (ServerSocketChannel server = ServerSocketChannel.open().bind(new InetSocketAddress(0)); Socket control = Measure.dialled(place, server.socket().getLocalPort())) { place.time(() -> { io.netty.util.internal.SocketUtils.accept(server).close(); return null; }); } });
        netty("common", sockets, "SocketUtils.addressByName", Measure.cpu(2000, () -> io.netty.util.internal.SocketUtils.addressByName("127.0.0.1")));
        netty("common", "util/internal/PlatformDependent", "PlatformDependent.createTempFile", Measure.eachOf(Measure::fresh, p -> io.netty.util.internal.PlatformDependent.createTempFile("abc", "d", p.getParent().toFile())));
        netty("common", "util/concurrent/DefaultPromise", "DefaultPromise.await(long,TimeUnit)", Measure.cpu(1, () -> new DefaultPromise<>(GlobalEventExecutor.INSTANCE).await(20, TimeUnit.MILLISECONDS)));
        netty("common", "util/concurrent/DefaultPromise", "DefaultPromise.awaitUninterruptibly(long)", Measure.cpu(1, () -> new DefaultPromise<>(GlobalEventExecutor.INSTANCE).awaitUninterruptibly(20)));
        netty("common", "util/concurrent/DefaultPromise", "DefaultPromise.setSuccess", Measure.cpu(50000, () -> new DefaultPromise<>(GlobalEventExecutor.INSTANCE).setSuccess(null)));
        netty("common", "util/NetUtil", "NetUtil.createByteArrayFromIpAddressString", Measure.cpu(50000, () -> io.netty.util.NetUtil.createByteArrayFromIpAddressString("192.168.1.20")));
        netty("resolver", "resolver/HostsFileParser", "HostsFileParser.parse(File,Charset...)", Measure.eachOf(d -> { List<java.nio.file.Path> all = Measure.many(d); for (java.nio.file.Path f : all) { java.nio.file.Files.writeString(f, "127.0.0.1 a b c\n10.0.0.1 d\n"); } return all; }, f -> io.netty.resolver.HostsFileParser.parse(f.toFile(), CharsetUtil.UTF_8)));
        netty("handler", "handler/stream/ChunkedStream", "ChunkedStream.readChunk(ByteBufAllocator)", Measure.disk(Measure::big, f -> { ChunkedStream s = new ChunkedStream(new FileInputStream(f.toFile()), 65536); while (!s.isEndOfInput()) { s.readChunk(UnpooledByteBufAllocator.DEFAULT).release(); } s.close(); return null; }));
        netty("handler", "handler/stream/ChunkedNioStream", "ChunkedNioStream.readChunk(ByteBufAllocator)", Measure.disk(Measure::big, f -> { ChunkedNioStream s = new ChunkedNioStream(FileChannel.open(f), 65536); while (!s.isEndOfInput()) { s.readChunk(UnpooledByteBufAllocator.DEFAULT).release(); } s.close(); return null; }));
        netty("handler", "handler/ssl/SslContextBuilder", "SslContextBuilder.build", Measure.cpu(3, () -> io.netty.handler.ssl.SslContextBuilder.forClient().build()));
        String heap = "buffer/UnpooledHeapByteBuf";
        netty("buffer", heap, "UnpooledHeapByteBuf.setBytes(int,InputStream,int)", Measure.disk(Measure::big, f -> { try (InputStream in = new FileInputStream(f.toFile())) { return Unpooled.buffer(Measure.BIG).setBytes(0, in, Measure.BIG); } }));
        netty("buffer", heap, "UnpooledHeapByteBuf.setBytes(int,FileChannel,long,int)", Measure.disk(Measure::big, f -> { try (FileChannel in = FileChannel.open(f)) { return Unpooled.buffer(Measure.BIG).setBytes(0, in, 0L, Measure.BIG); } }));
        netty("buffer", heap, "UnpooledHeapByteBuf.getBytes(int,OutputStream,int)", Measure.disk(d -> d.resolve("n"), f -> { try (OutputStream out = new FileOutputStream(f.toFile())) { return Unpooled.wrappedBuffer(Measure.DATA).getBytes(0, out, Measure.BIG); } }));
        netty("buffer", "buffer/AbstractByteBuf", "AbstractByteBuf.writeBytes(InputStream,int)", Measure.disk(Measure::big, f -> { try (InputStream in = new FileInputStream(f.toFile())) { return Unpooled.buffer(Measure.BIG).writeBytes(in, Measure.BIG); } }));
        netty("buffer", "buffer/AbstractByteBuf", "AbstractByteBuf.readBytes(GatheringByteChannel,int)", place -> { try (SocketChannel c = Measure.channel(place, "SINK 4194304\n")) { place.time(() -> { ByteBuf b = Unpooled.directBuffer(PROSE.length).writeBytes(PROSE); while (b.isReadable()) { b.readBytes(c, b.readableBytes()); } return null; }); } });
        netty("buffer", "buffer/AbstractByteBuf", "AbstractByteBuf.writeBytes(ScatteringByteChannel,int)", place -> { try (SocketChannel c = Measure.channel(place, "SEND 100000\n")) { place.time(() -> { ByteBuf b = Unpooled.directBuffer(100000); while (b.isWritable()) { b.writeBytes(c, b.writableBytes()); } return null; }); } });
        netty("buffer", "buffer/ByteBufInputStream", "ByteBufInputStream.read(byte[],int,int)", Measure.cpu(200, () -> Measure.drain(new ByteBufInputStream(Unpooled.wrappedBuffer(PROSE)))));
        String data = "handler/codec/http/multipart/";
        netty("codec-http", data + "AbstractDiskHttpData", "AbstractDiskHttpData.setContent(ByteBuf)", place -> { DiskFileUpload u = upload(place); place.time(() -> { u.setContent(Unpooled.wrappedBuffer(Measure.DATA)); return null; }); u.delete(); });
        netty("codec-http", data + "AbstractDiskHttpData", "AbstractDiskHttpData.addContent", place -> { DiskFileUpload u = upload(place); place.time(() -> { for (int i = 0; i < 32; i++) { u.addContent(Unpooled.wrappedBuffer(Measure.DATA, i * Measure.MIB, Measure.MIB), i == 31); } return null; }); u.delete(); });
        netty("codec-http", data + "AbstractDiskHttpData", "AbstractDiskHttpData.setContent(InputStream)", place -> { DiskFileUpload u = upload(place); place.time(() -> { u.setContent(new ByteArrayInputStream(Measure.DATA)); return null; }); u.delete(); });
        netty("codec-http", data + "AbstractDiskHttpData", "AbstractDiskHttpData.get", place -> { DiskFileUpload u = upload(place); java.nio.file.Path f = Measure.big(place.folder); place.cool(); u.setContent(f.toFile()); place.time(u::get); });
        netty("codec-http", data + "AbstractDiskHttpData", "AbstractDiskHttpData.getChunk", place -> { DiskFileUpload u = upload(place); java.nio.file.Path f = Measure.big(place.folder); place.cool(); u.setContent(f.toFile()); place.time(() -> { for (int i = 0; i < 32; i++) { u.getChunk(Measure.MIB).release(); } return null; }); });
        netty("codec-http", data + "AbstractDiskHttpData", "AbstractDiskHttpData.renameTo", place -> { List<java.nio.file.Path> all = Measure.many(place.folder); place.cool(); place.time(() -> { for (java.nio.file.Path f : all) { DiskFileUpload u = upload(place); u.setContent(f.toFile()); u.renameTo(new File(f + ".n")); } return null; }); });
        netty("codec-http", data + "AbstractMemoryHttpData", "AbstractMemoryHttpData.setContent(File)", place -> { java.nio.file.Path f = Measure.big(place.folder); place.cool(); place.time(() -> { MemoryFileUpload u = new MemoryFileUpload("a", "b", "text/plain", "binary", CharsetUtil.UTF_8, Measure.BIG); u.setContent(f.toFile()); u.delete(); return null; }); });
        netty("codec-http", data + "AbstractMemoryHttpData", "AbstractMemoryHttpData.renameTo", place -> { MemoryFileUpload u = new MemoryFileUpload("a", "b", "text/plain", "binary", CharsetUtil.UTF_8, Measure.BIG); u.setContent(Unpooled.wrappedBuffer(Measure.DATA)); place.time(() -> u.renameTo(place.path("n").toFile())); u.delete(); });
        netty("codec-http", data + "HttpPostRequestEncoder", "HttpPostRequestEncoder.finalizeRequest", Measure.cpu(500, () -> { HttpPostRequestEncoder e = new HttpPostRequestEncoder(new DefaultFullHttpRequest(HttpVersion.HTTP_1_1, HttpMethod.POST, "/"), false); e.addBodyAttribute("a", "some words"); e.addBodyAttribute("b", "c"); return e.finalizeRequest(); }));
        netty("codec-http2", "handler/codec/http2/DefaultHttp2HeadersEncoder", "DefaultHttp2HeadersEncoder.encodeHeaders", Measure.cpu(500, () -> { ByteBuf b = Unpooled.buffer(); new io.netty.handler.codec.http2.DefaultHttp2HeadersEncoder().encodeHeaders(3, new io.netty.handler.codec.http2.DefaultHttp2Headers().add("some-name", "some value").add("other", "x"), b); return b; }));
        String unix = "channel/unix/FileDescriptor";
        netty("transport-native-unix-common", unix, "FileDescriptor.from(String)", native_(Measure.each(f -> io.netty.channel.unix.FileDescriptor.from(f.toString()).close())));
        netty("transport-native-unix-common", unix, "FileDescriptor.write", native_(Measure.disk(d -> java.nio.file.Files.createFile(d.resolve("n")), f -> { io.netty.channel.unix.FileDescriptor d = io.netty.channel.unix.FileDescriptor.from(f.toString()); ByteBuffer b = ByteBuffer.allocateDirect(Measure.MIB); for (int i = 0; i < 32; i++) { d.write(b, 0, Measure.MIB); } d.close(); return null; })));
    }
}
