import jakarta.activation.DataHandler;
import jakarta.activation.FileDataSource;
import jakarta.jws.Oneway;
import jakarta.jws.WebMethod;
import jakarta.jws.WebParam;
import jakarta.jws.WebResult;
import jakarta.jws.WebService;
import jakarta.xml.bind.annotation.XmlAccessType;
import jakarta.xml.bind.annotation.XmlAccessorType;
import jakarta.xml.bind.annotation.XmlElement;
import jakarta.xml.bind.annotation.XmlMimeType;
import jakarta.xml.bind.annotation.XmlRootElement;
import jakarta.xml.bind.annotation.XmlType;
import jakarta.xml.ws.soap.SOAPFaultException;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Vector;
import javax.security.auth.callback.CallbackHandler;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.axis.AxisFault;
import org.apache.axis.client.Call;
import org.apache.axis.message.SOAPBodyElement;
import org.apache.cxf.Bus;
import org.apache.cxf.BusFactory;
import org.apache.cxf.endpoint.Client;
import org.apache.cxf.frontend.ClientProxy;
import org.apache.cxf.interceptor.InterceptorProvider;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import org.apache.cxf.ws.addressing.WSAddressingFeature;
import org.apache.cxf.ws.rm.feature.RMFeature;
import org.apache.cxf.ws.security.wss4j.WSS4JInInterceptor;
import org.apache.cxf.ws.security.wss4j.WSS4JOutInterceptor;
import org.apache.wss4j.common.crypto.Merlin;
import org.apache.wss4j.common.ext.WSPasswordCallback;
import org.apache.wss4j.dom.handler.WSHandlerConstants;
import org.w3c.dom.Element;
import org.xml.sax.InputSource;

/**
 * A server of stacks.wsdl with Apache CXF, and clients with CXF and Axis 1.4, in one process:
 * Stacks KEY.pem CERT.pem PAYLOAD. Prints the server's port. Then each line of its input is a
 * client and what it calls, as in "cxf records=URL fault=URL", and is answered by a line for each
 * call and an empty one; services=URL calls those of hhfr serve, kept:FILE=URL those of a file.
 */
public class Stacks {
    static final String NS = "urn:hhfr:peer:1";

    @XmlAccessorType(XmlAccessType.FIELD)
    @XmlType(name = "Record", namespace = NS, propOrder = {"text", "number", "flag"})
    public static class Record {
        @XmlElement(namespace = NS) public String text;
        @XmlElement(namespace = NS) public int number;
        @XmlElement(namespace = NS) public boolean flag;
    }

    @XmlAccessorType(XmlAccessType.FIELD)
    @XmlRootElement(name = "upload", namespace = NS)
    public static class Upload {
        @XmlElement(namespace = NS) @XmlMimeType("application/octet-stream") public DataHandler data;
    }

    @XmlAccessorType(XmlAccessType.FIELD)
    @XmlRootElement(name = "uploadResponse", namespace = NS)
    @XmlType(propOrder = {"size", "sha256"})
    public static class UploadResponse {
        @XmlElement(namespace = NS) public int size;
        @XmlElement(namespace = NS) public String sha256;
    }

    @WebService(targetNamespace = NS, name = "stacksPortType")
    public interface Port {
        @WebMethod
        @WebResult(name = "record", targetNamespace = NS)
        List<Record> records(@WebParam(name = "record", targetNamespace = NS) List<Record> record);

        @WebMethod
        @Oneway
        void note(@WebParam(name = "text", targetNamespace = NS) String text);

        @WebMethod
        @jakarta.jws.soap.SOAPBinding(parameterStyle = jakarta.jws.soap.SOAPBinding.ParameterStyle.BARE)
        @WebResult(name = "uploadResponse", targetNamespace = NS)
        UploadResponse upload(@WebParam(name = "upload", targetNamespace = NS) Upload upload);
    }

    @WebService(targetNamespace = NS, serviceName = "stacks", endpointInterface = "Stacks$Port")
    public static class Service implements Port {
        public List<Record> records(List<Record> record) {
            for (Record r : record) {
                if (r.text.equals("refuse")) {
                    throw new RuntimeException("no such record");
                }
            }
            return record;
        }

        public void note(String text) {}

        public UploadResponse upload(Upload u) {
            UploadResponse r = new UploadResponse();
            try (InputStream in = u.data.getInputStream()) {
                MessageDigest digest = MessageDigest.getInstance("SHA-256");
                byte[] some = new byte[1 << 16];
                for (int n; (n = in.read(some)) >= 0; r.size += n) {
                    digest.update(some, 0, n);
                }
                r.sha256 = HexFormat.of().formatHex(digest.digest());
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
            return r;
        }
    }

    static Merlin keys;
    static String payload;

    public static void main(String[] args) throws Exception {
        keys = keys(Path.of(args[0]), Path.of(args[1]));
        payload = args[2];
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        for (String feature : List.of("plain", "upload", "addressed", "signed", "reliable")) {
            JaxWsServerFactoryBean server = new JaxWsServerFactoryBean();
            server.setServiceClass(Service.class);
            server.setServiceBean(new Service());
            server.setAddress("http://127.0.0.1:" + port + "/cxf/" + feature);
            server.setProperties(new HashMap<>(Map.of("mtom-enabled", feature.equals("upload"))));
            switch (feature) {
                case "addressed" -> server.getFeatures().add(addressing());
                case "signed" -> sign(server);
                case "reliable" -> server.getFeatures().addAll(List.of(addressing(), new RMFeature()));
                default -> { }
            }
            server.create();
        }
        System.out.println(port);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            for (int i = 1; i < words.length; i++) {
                String[] call = words[i].split("=", 2);
                boolean axis = words[0].equals("axis");
                String said;
                try {
                    if (call[0].equals("services")) {
                        System.out.print(axis ? Services.axis(call[1]) : Services.cxf(call[1]));
                        continue;
                    }
                    if (call[0].contains(":")) {
                        Real.calls(words[0], call[0], call[1]);
                        continue;
                    }
                    said = axis ? axis(call[0], call[1]) : cxf(call[0], call[1]);
                } catch (Throwable e) {
                    e.printStackTrace();
                    said = "failed: " + e;
                }
                System.out.println(call[0] + ": " + said.replace('\n', ' '));
            }
            System.out.println();
        }
        System.exit(0);
    }

    static Merlin keys(Path key, Path cert) throws Exception {
        byte[] der = Base64.getMimeDecoder().decode(Files.readString(key).replaceAll("-----[^-]+-----", ""));
        Certificate c = CertificateFactory.getInstance("X.509").generateCertificate(Files.newInputStream(cert));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("peer", KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(der)),
            "secret".toCharArray(), new Certificate[] {c});
        store.setCertificateEntry("trusted", c);
        Merlin m = new Merlin();
        m.setKeyStore(store);
        return m;
    }

    static WSAddressingFeature addressing() {
        WSAddressingFeature f = new WSAddressingFeature();
        f.setAddressingRequired(true);
        return f;
    }

    /** Signs what is sent, and refuses what is not signed. */
    static void sign(InterceptorProvider to) {
        CallbackHandler password = all -> ((WSPasswordCallback) all[0]).setPassword("secret");
        Map<String, Object> how = new HashMap<>(Map.of(
            WSHandlerConstants.ACTION, WSHandlerConstants.SIGNATURE,
            WSHandlerConstants.USER, "peer",
            WSHandlerConstants.PW_CALLBACK_REF, password,
            WSHandlerConstants.SIG_KEY_ID, "DirectReference",
            WSHandlerConstants.SIG_PROP_REF_ID, "keys",
            WSHandlerConstants.SIG_VER_PROP_REF_ID, "keys",
            "keys", keys));
        to.getOutInterceptors().add(new WSS4JOutInterceptor(how));
        to.getOutFaultInterceptors().add(new WSS4JOutInterceptor(how));
        to.getInInterceptors().add(new WSS4JInInterceptor(how));
        to.getInFaultInterceptors().add(new WSS4JInInterceptor(how));
    }

    static List<Record> rows() {
        List<Record> rows = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            Record r = new Record();
            r.text = "row " + i + ": <&> \u00e9";
            r.number = i * 3 - 100;
            r.flag = i % 3 == 0;
            rows.add(r);
        }
        return rows;
    }

    static String cxf(String call, String url) throws Exception {
        Bus bus = BusFactory.newInstance().createBus(); // what a client associates is not the server's
        JaxWsProxyFactoryBean made = new JaxWsProxyFactoryBean();
        made.setBus(bus);
        made.setServiceClass(Port.class);
        made.setAddress(url);
        made.setProperties(new HashMap<>(Map.of("mtom-enabled", call.equals("upload"))));
        switch (call) {
            case "addressed" -> made.getFeatures().add(addressing());
            case "signed" -> sign(made);
            case "reliable", "reliable11" -> {
                RMFeature f = new RMFeature();
                if (call.equals("reliable11")) {
                    f.setRMNamespace("http://docs.oasis-open.org/ws-rx/wsrm/200702");
                }
                made.getFeatures().addAll(List.of(addressing(), f));
            }
            default -> { }
        }
        Port port = (Port) made.create();
        try (Client client = ClientProxy.getClient(port)) {
            switch (call) {
                case "fault":
                    Record bad = new Record();
                    bad.text = "refuse";
                    try {
                        port.records(List.of(bad));
                        return "no fault";
                    } catch (SOAPFaultException e) {
                        return e.getFault().getFaultString();
                    }
                case "note":
                    port.note("remember <this>");
                    return "sent";
                case "upload":
                    Upload u = new Upload();
                    u.data = new DataHandler(new FileDataSource(payload));
                    UploadResponse r = port.upload(u);
                    return r.size + " " + r.sha256;
                default:
                    List<Record> got = null;
                    for (int i = 0; i < 3; i++) {
                        got = port.records(rows());
                    }
                    return show(got);
            }
        } finally {
            bus.shutdown(true);
        }
    }

    static String show(List<Record> rows) {
        List<Record> want = rows();
        for (int i = 0; i < want.size(); i++) {
            Record a = want.get(i), b = rows.get(i);
            if (!a.text.equals(b.text) || a.number != b.number || a.flag != b.flag) {
                return "another row " + i;
            }
        }
        return rows.size() + " rows";
    }

    static String axis(String call, String url) throws Exception {
        Call c = (Call) new org.apache.axis.client.Service().createCall();
        c.setTargetEndpointAddress(new java.net.URL(url));
        switch (call) {
            case "fault":
                try {
                    c.invoke(new Object[] {element("<records xmlns='" + NS + "'><record><text>refuse</text>"
                        + "<number>0</number><flag>false</flag></record></records>")});
                    return "no fault";
                } catch (AxisFault e) {
                    return e.getFaultString();
                }
            case "note":
                c.invokeOneWay(new Object[] {element("<note xmlns='" + NS + "'><text>remember &lt;this></text></note>")});
                return "sent";
            default:
                StringBuilder b = new StringBuilder("<records xmlns='" + NS + "'>");
                for (Record r : rows()) {
                    b.append("<record><text>").append(r.text.replace("&", "&amp;").replace("<", "&lt;"))
                        .append("</text><number>").append(r.number).append("</number><flag>").append(r.flag)
                        .append("</flag></record>");
                }
                Vector<?> got = (Vector<?>) c.invoke(new Object[] {element(b + "</records>")});
                return show(records(((SOAPBodyElement) got.get(0)).getAsDOM()));
        }
    }

    static SOAPBodyElement element(String xml) throws Exception {
        DocumentBuilderFactory f = DocumentBuilderFactory.newInstance();
        f.setNamespaceAware(true);
        return new SOAPBodyElement(f.newDocumentBuilder().parse(new InputSource(new StringReader(xml))).getDocumentElement());
    }

    static List<Record> records(Element reply) {
        List<Record> all = new ArrayList<>();
        var list = reply.getElementsByTagNameNS(NS, "record");
        for (int i = 0; i < list.getLength(); i++) {
            Element e = (Element) list.item(i);
            Record r = new Record();
            r.text = value(e, "text");
            r.number = Integer.parseInt(value(e, "number"));
            r.flag = Boolean.parseBoolean(value(e, "flag"));
            all.add(r);
        }
        return all;
    }

    static String value(Element e, String name) {
        return e.getElementsByTagNameNS(NS, name).item(0).getTextContent();
    }
}
