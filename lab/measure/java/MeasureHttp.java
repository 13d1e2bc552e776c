import java.io.*;
import java.net.Socket;
import java.util.List;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager;
import org.apache.hc.core5.http.*;
import org.apache.hc.core5.http.config.Http1Config;
import org.apache.hc.core5.http.impl.io.*;
import org.apache.hc.core5.http.io.entity.*;
import org.apache.hc.core5.http.message.*;
import org.apache.hc.core5.http.protocol.HttpCoreContext;
import org.apache.hc.core5.net.URIBuilder;
import org.apache.hc.core5.util.CharArrayBuffer;

/** The calls of HttpComponents, classic (blocking). */
final class MeasureHttp {
    private MeasureHttp() { }

    private static void core(String file, String name, Measure.Workload workload) {
        Measure.add("httpcore5", "httpcore5/org/apache/hc/core5/" + file + ".java", name, workload);
    }

    private static void client(String file, String name, Measure.Workload workload) {
        Measure.add("httpclient5", "httpclient5/org/apache/hc/client5/http/" + file + ".java", name, workload);
    }

    private interface OnConnection { void use(Measure.Place place, DefaultBHttpClientConnection connection) throws Exception; }

    private static Measure.Workload connected(OnConnection use) {
        return place -> {
            try (Socket socket = new Socket()) {
                socket.connect(place.address("http"));
                DefaultBHttpClientConnection connection = new DefaultBHttpClientConnection(Http1Config.DEFAULT);
                connection.bind(socket);
                use.use(place, connection);
                connection.close(org.apache.hc.core5.io.CloseMode.IMMEDIATE);
            }
        };
    }

    private static BasicClassicHttpRequest request(Measure.Place place, String method, String path) {
        BasicClassicHttpRequest request = new BasicClassicHttpRequest(method, new HttpHost("http", place.peer, place.ports.get("http")), path);
        request.addHeader("Host", place.peer);
        return request;
    }

    private static BasicClassicHttpRequest upload(Measure.Place place) {
        BasicClassicHttpRequest request = request(place, "PUT", "/a");
        request.setEntity(new ByteArrayEntity(Measure.PROSE, ContentType.APPLICATION_OCTET_STREAM));
        request.addHeader("Content-Length", Integer.toString(Measure.PROSE.length));
        return request;
    }

    private static CharArrayBuffer line(String text) {
        CharArrayBuffer buffer = new CharArrayBuffer(64);
        buffer.append(text);
        return buffer;
    }

    static void add() {
        String c = "http/impl/io/DefaultBHttpClientConnection";
        core(c, "DefaultBHttpClientConnection.sendRequestHeader", connected((p, k) -> p.time(() -> { k.sendRequestHeader(request(p, "GET", "/a")); k.flush(); return null; })));
        core(c, "DefaultBHttpClientConnection.sendRequestEntity", connected((p, k) -> { BasicClassicHttpRequest r = upload(p); k.sendRequestHeader(r); p.time(() -> { k.sendRequestEntity(r); k.flush(); return null; }); }));
        core(c, "DefaultBHttpClientConnection.receiveResponseHeader", connected((p, k) -> { k.sendRequestHeader(request(p, "GET", "/a")); k.flush(); p.time(k::receiveResponseHeader); }));
        core("http/impl/io/SessionInputBufferImpl", "SessionInputBufferImpl.fillBuffer", Measure.reading("SEND 100000\n", s -> { SessionInputBufferImpl b = new SessionInputBufferImpl(8192); int all = 0; while (all < 100000) { all += b.fillBuffer(s.getInputStream()); b.clear(); } return all; }));
        core("http/impl/io/SessionInputBufferImpl", "SessionInputBufferImpl.readLine", Measure.reading("SEND 100000\n", s -> { SessionInputBufferImpl b = new SessionInputBufferImpl(8192); for (int i = 0; i < 6; i++) { b.readLine(new CharArrayBuffer(20000), s.getInputStream()); } return b; }));
        core("http/impl/io/SessionOutputBufferImpl", "SessionOutputBufferImpl.write(byte[],int,int,OutputStream)", Measure.reading("SINK 4194304\n", s -> { SessionOutputBufferImpl b = new SessionOutputBufferImpl(8192); b.write(Measure.PROSE, 0, Measure.PROSE.length, s.getOutputStream()); b.flush(s.getOutputStream()); return b; }));
        core("http/impl/io/ContentLengthInputStream", "ContentLengthInputStream.read(byte[],int,int)", Measure.reading("SEND 100000\n", s -> Measure.drain(new ContentLengthInputStream(new SessionInputBufferImpl(8192), s.getInputStream(), 100000))));
        core("http/impl/io/ContentLengthOutputStream", "ContentLengthOutputStream.write(byte[],int,int)", Measure.reading("SINK 4194304\n", s -> { OutputStream out = new ContentLengthOutputStream(new SessionOutputBufferImpl(8192), s.getOutputStream(), Measure.PROSE.length); out.write(Measure.PROSE, 0, Measure.PROSE.length); out.close(); return null; }));
        core("http/impl/io/HttpRequestExecutor", "HttpRequestExecutor.execute(ClassicHttpRequest,HttpClientConnection,HttpContext)", connected((p, k) -> p.time(() -> { ClassicHttpResponse r = new HttpRequestExecutor().execute(request(p, "GET", "/bytes/100000"), k, HttpCoreContext.create()); return EntityUtils.toByteArray(r.getEntity()); })));
        core("http/io/entity/EntityUtils", "EntityUtils.toByteArray(HttpEntity)", connected((p, k) -> { ClassicHttpResponse r = new HttpRequestExecutor().execute(request(p, "GET", "/bytes/100000"), k, HttpCoreContext.create()); p.time(() -> EntityUtils.toByteArray(r.getEntity())); }));
        core("http/io/entity/FileEntity", "FileEntity.getContent", Measure.each(f -> { FileEntity e = new FileEntity(f.toFile(), ContentType.DEFAULT_BINARY); e.getContent().close(); }));
        core("http/io/entity/AbstractHttpEntity", "AbstractHttpEntity.writeTo(HttpEntity,OutputStream)", Measure.disk(Measure::big, f -> { new FileEntity(f.toFile(), ContentType.DEFAULT_BINARY).writeTo(OutputStream.nullOutputStream()); return null; }));
        core("http/io/entity/StringEntity", "StringEntity.<init>(String,ContentType)", Measure.cpu(20000, () -> new StringEntity("some text é", ContentType.TEXT_PLAIN)));
        core("http/message/BasicLineParser", "BasicLineParser.parseHeader", Measure.cpu(20000, () -> BasicLineParser.INSTANCE.parseHeader(line("Some-Name: some value"))));
        core("http/message/BasicLineParser", "BasicLineParser.parseStatusLine", Measure.cpu(20000, () -> BasicLineParser.INSTANCE.parseStatusLine(line("HTTP/1.1 200 Fine"))));
        core("http/message/BasicLineFormatter", "BasicLineFormatter.formatHeader", Measure.cpu(20000, () -> { CharArrayBuffer b = new CharArrayBuffer(64); BasicLineFormatter.INSTANCE.formatHeader(b, new BasicHeader("A", "b")); return b; }));
        core("net/URIBuilder", "URIBuilder.build", Measure.cpu(5000, () -> new URIBuilder("http://a.b:80/c?d=e").addParameter("f", "g h").build()));
        core("net/WWWFormCodec", "WWWFormCodec.parse(CharSequence,Charset)", Measure.cpu(5000, () -> org.apache.hc.core5.net.WWWFormCodec.parse("a=b&c=d%20e", java.nio.charset.StandardCharsets.UTF_8)));
        CloseableHttpClient http = HttpClients.custom().setConnectionManager(new PoolingHttpClientConnectionManager()).disableAutomaticRetries().build();
        String i = "impl/classic/";
        client(i + "InternalHttpClient", "InternalHttpClient.doExecute", Measure.repeated(1, p -> http.execute(new HttpGet(p.url("bytes/100000")), r -> EntityUtils.toByteArray(r.getEntity()))));
        client(i + "CloseableHttpClient", "CloseableHttpClient.execute(ClassicHttpRequest,HttpClientResponseHandler)", Measure.repeated(1, p -> http.execute(new HttpGet(p.url("bytes/100000")), r -> EntityUtils.toByteArray(r.getEntity()))));
        client(i + "MainClientExec", "MainClientExec.execute", Measure.repeated(1, p -> http.execute(new HttpGet(p.url("a")), r -> r.getCode())));
        client(i + "ConnectExec", "ConnectExec.execute", Measure.repeated(1, p -> http.execute(new HttpGet(p.url("a")), r -> r.getCode())));
        client(i + "ProtocolExec", "ProtocolExec.execute", Measure.repeated(1, p -> http.execute(new HttpGet(p.url("a")), r -> r.getCode())));
        client("impl/io/PoolingHttpClientConnectionManager", "PoolingHttpClientConnectionManager.connect", Measure.repeated(5, p -> { try (CloseableHttpClient fresh = HttpClients.createMinimal(new PoolingHttpClientConnectionManager())) { fresh.execute(new HttpGet(p.url("a")), r -> r.getCode()); } }));
        client("impl/cookie/RFC6265CookieSpec", "RFC6265CookieSpec.parse", Measure.cpu(5000, () -> new org.apache.hc.client5.http.impl.cookie.RFC6265LaxSpec().parse(new BasicHeader("Set-Cookie", "a=b; Path=/; Max-Age=100"), new org.apache.hc.client5.http.cookie.CookieOrigin("a.b", 80, "/", false))));
        client("utils/URIUtils", "URIUtils.resolve(URI,String)", Measure.cpu(5000, () -> org.apache.hc.client5.http.utils.URIUtils.resolve(java.net.URI.create("http://a.b/c/d"), "../e")));
        client("utils/DateUtils", "DateUtils.parseStandardDate(String)", Measure.cpu(2000, () -> org.apache.hc.client5.http.utils.DateUtils.parseStandardDate("Fri, 02 Jan 2026 10:00:00 GMT")));
    }
}
