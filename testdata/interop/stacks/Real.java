import java.io.ByteArrayInputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.cxf.endpoint.Client;
import org.apache.cxf.frontend.ClientProxy;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.apache.cxf.transport.http.HTTPConduit;
import org.apache.cxf.transports.http.configuration.ConnectionType;

/**
 * Calls of a file, as testdata/interop/real/values.py describes it, with CXF and HttpURLConnection:
 * kept or closed, and the file, as in "cxf kept:FILE=URL". Prints the microseconds of each.
 */
final class Real {
    private interface Call {
        List<Stacks.Record> make(List<Stacks.Record> records) throws Exception;
    }

    static void calls(String client, String how, String url) throws Exception {
        String[] parts = how.split(":", 2);
        boolean kept = parts[0].equals("kept");
        if (!client.equals("cxf")) {
            timed(parts[1], records -> connection(records, kept, url));
            return;
        }
        JaxWsProxyFactoryBean made = new JaxWsProxyFactoryBean();
        made.setServiceClass(Stacks.Port.class);
        made.setAddress(url);
        Stacks.Port port = (Stacks.Port) made.create();
        try (Client c = ClientProxy.getClient(port)) {
            if (!kept) {
                ((HTTPConduit) c.getConduit()).getClient().setConnection(ConnectionType.CLOSE);
            }
            timed(parts[1], port::records);
        }
    }

    private static void timed(String file, Call call) throws Exception {
        for (String lines : Files.readString(Path.of(file)).split("\n\n")) {
            List<Stacks.Record> records = new ArrayList<>();
            for (String line : lines.strip().split("\n")) {
                String[] columns = line.split("\t");
                Stacks.Record r = new Stacks.Record();
                r.text = columns[0];
                r.number = Integer.parseInt(columns[1]);
                r.flag = columns[2].equals("true");
                records.add(r);
            }
            long began = System.nanoTime();
            List<Stacks.Record> got = call.make(records);
            long took = System.nanoTime() - began;
            if (!said(got).equals(said(records))) {
                throw new Exception("another reply: " + said(got));
            }
            System.out.println(took / 1000);
        }
    }

    private static String said(List<Stacks.Record> records) {
        StringBuilder all = new StringBuilder();
        for (Stacks.Record r : records) {
            all.append(r.text).append('\t').append(r.number).append('\t').append(r.flag).append('\n');
        }
        return all.toString();
    }

    private static List<Stacks.Record> connection(List<Stacks.Record> records, boolean kept, String url) throws Exception {
        StringBuilder body = new StringBuilder("<?xml version=\"1.0\" encoding=\"UTF-8\"?><S:Envelope "
            + "xmlns:S=\"http://schemas.xmlsoap.org/soap/envelope/\"><S:Body><records xmlns=\"" + Stacks.NS + "\">");
        for (Stacks.Record r : records) {
            body.append("<record><text>").append(r.text).append("</text><number>").append(r.number).append("</number><flag>")
                .append(r.flag).append("</flag></record>");
        }
        byte[] octets = body.append("</records></S:Body></S:Envelope>").toString().getBytes(StandardCharsets.UTF_8);
        HttpURLConnection c = (HttpURLConnection) URI.create(url).toURL().openConnection();
        c.setRequestMethod("POST");
        c.setDoOutput(true);
        c.setRequestProperty("Content-Type", "text/xml; charset=utf-8");
        c.setRequestProperty("SOAPAction", "\"\"");
        if (!kept) {
            c.setRequestProperty("Connection", "close");
        }
        try (OutputStream out = c.getOutputStream()) {
            out.write(octets);
        }
        DocumentBuilderFactory f = DocumentBuilderFactory.newInstance();
        f.setNamespaceAware(true);
        return Stacks.records(f.newDocumentBuilder().parse(new ByteArrayInputStream(c.getInputStream().readAllBytes()))
            .getDocumentElement());
    }
}
